//! Size: a hundred thousand nodes are read, a single huge problem is not.

use std::fmt::Write;

use wonder_spec::read;

/// About 12 MB: a chain of nodes with commands, templates and conditions.
fn chain(nodes: usize) -> String {
    let mut text = String::from("wonder: 1\nname: large\nnodes:\n");
    for at in 0..nodes {
        let _ = write!(text, "  n{at}: {{shell: {{command: \"echo {{{{ input.count }}}}\", timeout: 30s}}");
        if at + 1 < nodes {
            let _ = write!(text, ", next: [{{to: n{}, when: input.count >= 0}}, {{to: n0}}]", at + 1);
        }
        text.push_str("}\n");
    }
    text
}

#[test]
fn a_hundred_thousand_nodes_are_read() {
    let text = chain(100_000);
    let started = std::time::Instant::now();
    let reading = read(&text, "large.yaml").unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    println!("{} bytes in {:?}", text.len(), started.elapsed());
    assert_eq!(reading.graphs[0].nodes.len(), 100_000);
}

#[test]
fn a_file_beyond_the_bound_is_refused_before_it_is_parsed() {
    let text = " ".repeat(wonder_spec::FILE_BYTES_MAX + 1);
    assert!(read(&text, "large.yaml").unwrap_err().render(false).contains("E0001"));
}

#[test]
fn an_error_on_every_line_is_still_quick() {
    let mut text = String::from("wonder: 1\nname: large\nnodes:\n");
    for at in 0..20_000 {
        let _ = writeln!(text, "  n{at}: {{mok: {{}}, next: nowhere}}");
    }
    assert!(read(&text, "large.yaml").unwrap_err().len() >= 20_000);
}

#[test]
fn a_read_of_what_nobody_writes_at_every_node_is_still_quick() {
    let text = chain(20_000).replace("input.count", "state.count");
    assert!(read(&text, "large.yaml").unwrap_err().len() >= 20_000);
}
