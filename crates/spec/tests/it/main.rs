//! tmp
#[test]
fn show() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cases");
    let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    for path in names {
        let text = std::fs::read_to_string(&path).unwrap();
        println!("##### {}", path.file_name().unwrap().to_str().unwrap());
        match wonder_spec::read(&text, path.file_name().unwrap().to_str().unwrap()) {
            Ok(reading) => println!("{}\n{}", reading.warnings.render(false), wonder_spec::mermaid(&reading.graphs[0])),
            Err(problems) => println!("{}", problems.render(false)),
        }
    }
}
