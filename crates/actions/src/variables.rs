//! Variables of the environment, by name: which hold secrets, and which are ordinary, so that a command that nobody
//! keeps apart is given them. What is in neither table is kept from commands unless a file or a setting names it.

/// Keys of providers that do not end as keys do.
const KEYS: [&str; 8] = [
    "AWS_ACCESS_KEY_ID",
    "AZURE_STORAGE_KEY",
    "CLOUDFLARE_API_USER_SERVICE_KEY",
    "DATABASE_URL",
    "FAL_KEY",
    "GH_PAT",
    "MONGODB_URI",
    "REDIS_URL",
];

/// How the names of secrets end: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`, `GOOGLE_API_KEY`, `HF_TOKEN`,
/// `WONDER_TOKEN`, `AWS_SECRET_ACCESS_KEY`, `DB_PASSWORD` and so on.
const ENDINGS: [&str; 24] = [
    "ACCESSKEY",
    "ACCESS_KEY",
    "ACCOUNT_KEY",
    "APIKEY",
    "API_KEY",
    "AUTH_KEY",
    "CONNECTION_STRING",
    "CREDENTIAL",
    "CREDENTIALS",
    "DATABASE_URL",
    "DEPLOY_KEY",
    "ENCRYPTION_KEY",
    "MASTER_KEY",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PRIVATE_KEY",
    "SECRET",
    "SECRETS",
    "SECRET_KEY",
    "SIGNING_KEY",
    "SSH_KEY",
    "TOKEN",
    "_DSN",
];

/// What a machine, its tools and a person's preferences are described by.
const ORDINARY: [&str; 84] = [
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "CURL_CA_BUNDLE",
    "DENO_DIR",
    "DENO_INSTALL",
    "DOTNET_ROOT",
    "EDITOR",
    "FNM_DIR",
    "FORCE_COLOR",
    "GEM_HOME",
    "GEM_PATH",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "HOME",
    "HOMEBREW_CELLAR",
    "HOMEBREW_PREFIX",
    "HOMEBREW_REPOSITORY",
    "HOSTNAME",
    "JAVA_HOME",
    "JDK_HOME",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LINES",
    "LOGNAME",
    "M2_HOME",
    "MANPATH",
    "MAVEN_HOME",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "NODE_PATH",
    "NO_COLOR",
    "NVM_BIN",
    "NVM_DIR",
    "PAGER",
    "PATH",
    "PKG_CONFIG_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYTHONHOME",
    "PYTHONPATH",
    "RBENV_ROOT",
    "REQUESTS_CA_BUNDLE",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "SDKMAN_DIR",
    "SHELL",
    "SOURCE_DATE_EPOCH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "UV_CACHE_DIR",
    "VIRTUAL_ENV",
    "VISUAL",
    "VOLTA_HOME",
    // Where runs are, so that a command can speak of the run that it is a part of.
    "WONDER_HOME",
    "XDG_RUNTIME_DIR",
];
const ORDINARY_BEGINNINGS: [&str; 2] = ["LC_", "XDG_"];
/// Ordinary as long as they have no credentials in them.
const PROXIES: [&str; 4] = ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];

/// Whether a variable of this name holds a secret, as far as a name can tell.
pub fn holds_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    KEYS.contains(&name.as_str()) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Whether any command may see it.
pub(crate) fn is_ordinary(name: &str, value: &str) -> bool {
    if PROXIES.iter().any(|proxy| proxy.eq_ignore_ascii_case(name)) {
        return !value.contains('@');
    }
    let listed = ORDINARY.contains(&name) || ORDINARY_BEGINNINGS.iter().any(|start| name.starts_with(start));
    listed && !holds_secret(name)
}

/// Whether a list of names has it: `NAME`, or `PREFIX_*` for all that begin so.
pub(crate) fn is_named(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => pattern == name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_providers_and_what_is_called_a_secret_hold_secrets() {
        for name in [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "AZURE_OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SESSION_TOKEN",
            "GITHUB_TOKEN",
            "HF_TOKEN",
            "WONDER_TOKEN",
            "DB_PASSWORD",
            "db_password",
            "PGPASSWORD",
            "STRIPE_SECRET",
            "DEPLOY_PRIVATE_KEY",
            "DATABASE_URL",
            "SENTRY_DSN",
        ] {
            assert!(holds_secret(name), "{name}");
            assert!(!is_ordinary(name, "x"), "{name}");
        }
        for name in
            ["PATH", "HOME", "LANG", "TOKENIZERS_PARALLELISM", "KEYBOARD", "AWS_REGION", "SSH_AUTH_SOCK"]
        {
            assert!(!holds_secret(name), "{name}");
        }
    }

    #[test]
    fn what_is_ordinary_is_listed() {
        for name in ["PATH", "LC_ALL", "XDG_CACHE_HOME", "CARGO_HOME", "TZ"] {
            assert!(is_ordinary(name, "x"), "{name}");
        }
        for name in ["SSH_AUTH_SOCK", "KUBECONFIG", "AWS_PROFILE", "MY_SETTING", "WONDER_URL", "XDG_TOKEN"] {
            assert!(!is_ordinary(name, "x"), "{name}");
        }
        assert!(is_ordinary("https_proxy", "http://proxy:3128"));
        assert!(!is_ordinary("https_proxy", "http://me:pass@proxy:3128"));
    }

    #[test]
    fn names_match_whole_or_by_their_beginning() {
        let patterns = ["NAME".to_owned(), "AWS_*".to_owned()];
        assert!(is_named(&patterns, "NAME") && is_named(&patterns, "AWS_PROFILE"));
        assert!(!is_named(&patterns, "NAMES") && !is_named(&patterns, "AW") && !is_named(&[], ""));
    }
}
