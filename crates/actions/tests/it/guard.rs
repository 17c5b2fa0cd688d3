//! Where a request may not go: into the network that the host stands in, however it is told to. All of it is tried in a
//! network of its own, where a mistake reaches nobody and is seen.

use wonder_actions::{Settings, Worker};
use wonder_core::error::ErrorKind;
use wonder_core::input::TaskReport;

use crate::server::{Answer, Server};
use crate::support::{assert_failed, in_own_network, job, result};

async fn get(url: &str, fields: &str, settings: Settings) -> TaskReport {
    let (job, _output) = job(&format!(r#"{{http_request: {{url: "{url}"{fields}}}}}"#), "{}");
    Worker::new(settings).perform(job).await
}

fn allowing(host: String) -> Settings {
    Settings { allow_hosts: vec![host], ..Settings::default() }
}

#[test]
fn private_addresses_are_refused_at_once_and_nothing_is_sent() {
    in_own_network(async || {
        let server = Server::everywhere(vec![Answer::ok("secret")]).await;
        let port = server.port;
        let hosts = [
            "127.0.0.1",
            "localhost",
            "LOCALHOST",
            "127.1",
            "2130706433",
            "0x7f000001",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
            "10.1.2.3",
            "169.254.169.254",
            "2852039166",
            "0xa9fea9fe",
            "0251.0376.0251.0376",
            "[::ffff:169.254.169.254]",
            "[64:ff9b::a9fe:a9fe]",
            "192.168.0.1",
            "[fd00::1]",
            "user@10.1.2.3",
        ];
        for host in hosts {
            let report = get(&format!("http://{host}:{port}/"), "", Settings::default()).await;
            assert_eq!(report.tries, 0, "{host}");
            assert_failed(report, ErrorKind::ContractViolation, "`allow_private: true`");
        }
        assert_eq!(server.asked().len(), 0);
        // They are there: it is the guard that keeps us from them.
        for host in ["10.1.2.3", "169.254.169.254", "2852039166", "192.168.0.1"] {
            let url = format!("http://{host}:{port}/");
            result(get(&url, ", allow_private: true", Settings::default()).await);
        }
        assert_eq!(server.asked().len(), 4);
    });
}

#[test]
fn a_name_that_cannot_be_resolved_is_a_network_failure() {
    in_own_network(async || {
        let fields = ", execution: {retry_policy: {max_attempts: 1}}";
        let report = get("http://metadata.google.internal/", fields, Settings::default()).await;
        assert_failed(report, ErrorKind::Network, "GET http://metadata.google.internal/");
    });
}

#[test]
fn a_name_that_leads_home_is_refused_by_what_it_resolves_to() {
    in_own_network(async || {
        let server = Server::start(vec![Answer::ok("secret")]).await;
        let url = format!("http://localhost:{}/", server.port);
        let report = get(&url, "", Settings::default()).await;
        assert_failed(report, ErrorKind::ContractViolation, "may not reach localhost");
        result(get(&url, ", allow_private: true", Settings::default()).await);
    });
}

#[test]
fn a_host_that_the_settings_name_is_reached_and_no_other() {
    in_own_network(async || {
        let server = Server::start(vec![Answer::ok("")]).await;
        let (url, port) = (server.url(), server.port);
        result(get(&url, "", allowing("127.0.0.1".to_owned())).await);
        result(get(&url, "", allowing(format!("127.0.0.1:{port}"))).await);
        result(get(&format!("http://localhost:{port}/"), "", allowing(format!("localhost:{port}"))).await);
        for host in ["127.0.0.1:1".to_owned(), "localhost".to_owned()] {
            assert_failed(get(&url, "", allowing(host)).await, ErrorKind::ContractViolation, "may not reach");
        }
    });
}

#[test]
fn a_redirect_may_not_lead_where_the_request_may_not_go() {
    in_own_network(async || {
        let inner = Server::start(vec![Answer::ok("secret")]).await;
        for to in [
            inner.url(),
            format!("http://localhost:{}/", inner.port),
            "http://169.254.169.254/latest".to_owned(),
        ] {
            let outer = Server::start(vec![Answer::redirect(302, &to)]).await;
            let report = get(&outer.url(), "", allowing(format!("127.0.0.1:{}", outer.port))).await;
            assert_failed(report, ErrorKind::ContractViolation, "may not reach");
            assert_eq!(outer.asked().len(), 1);
        }
        assert_eq!(inner.asked().len(), 0);
        let outer = Server::start(vec![Answer::redirect(302, "file:///etc/passwd")]).await;
        let report = get(&outer.url(), ", allow_private: true", Settings::default()).await;
        assert_failed(report, ErrorKind::ContractViolation, "not file");
    });
}

#[test]
fn only_http_is_spoken() {
    in_own_network(async || {
        // What is written in the file is found when it is read; this comes from outside.
        let get = async |url: &str, value: &str| {
            let node = format!(r#"{{http_request: {{url: "{url}", allow_private: true}}}}"#);
            let (job, _output) = job(&node, &format!(r#"{{"value": "{value}"}}"#));
            Worker::new(Settings::default()).perform(job).await
        };
        for (scheme, rest) in [("ftp", "example.org/x"), ("file", "/etc/passwd")] {
            let report = get(&format!("{{{{ input.value }}}}://{rest}"), scheme).await;
            assert_failed(report, ErrorKind::ContractViolation, "speaks http and https");
        }
        let report = get("{{ input.value }}", "not an address").await;
        assert_failed(report, ErrorKind::ExpressionError, "is no address");
    });
}
