//! `init`: a first workflow, or one of the recipes, as files to start from. It never writes over a file.

use std::path::Path;

use serde_json::json;
use wonder_core::problem::nearest;

use crate::args::InitArgs;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::screen::Screen;
use crate::text::Text;

/// Files to start from. What a template does and how it is run stands in the head of its first file.
struct Template {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// Each file is one of `examples/recipes/`.
macro_rules! templates {
    ($($name:literal: $($file:literal)*;)*) => {
        &[$(Template {
            name: $name,
            files: &[$(($file, include_str!(concat!("../../../../examples/recipes/", $file)))),*],
        }),*]
    };
}

/// The first is what `init` writes without a name.
const TEMPLATES: &[Template] = templates! {
    "hello": "hello.yaml";
    "nightly": "nightly.yaml";
    "panel": "panel.yaml";
    "until_good": "until_good.yaml";
    "keep_going": "keep_going.yaml";
    "shared_child": "morning.yaml" "evening.yaml" "greet.yaml";
    "approval": "approval.yaml";
    "fan_out_budget": "fan_out_budget.yaml";
};

impl Template {
    /// The first sentence of its head.
    fn about(&self) -> String {
        let head = self.files[0].1.lines().map_while(|line| line.strip_prefix("# "));
        let head = head.collect::<Vec<_>>().join(" ");
        head.split_once(". ").map_or(head.clone(), |(first, _)| format!("{first}."))
    }

    /// The commands that its head promises an end of.
    fn commands(&self) -> Vec<String> {
        let lines = self.files[0].1.lines().filter_map(|line| {
            let line = line.strip_prefix("# Run it:").or_else(|| line.strip_prefix("# Then:"))?;
            Some(line.split("# exit").next()?.trim().to_owned())
        });
        lines.collect()
    }
}

pub(crate) fn init(args: &InitArgs, directory: &Path, screen: &Screen) -> Result<Exit, Fault> {
    if args.list {
        return list(screen);
    }
    let template = match &args.template {
        None => &TEMPLATES[0],
        Some(name) => TEMPLATES.iter().find(|known| known.name == name).ok_or_else(|| unknown(name))?,
    };
    write(template, directory)?;
    let files: Vec<&str> = template.files.iter().map(|(file, _)| *file).collect();
    let commands = template.commands();
    if screen.json {
        screen.print_json(&json!({"template": template.name, "files": files, "next": commands}))?;
        return Ok(Exit::Fine);
    }
    let mut text = format!("wrote {}: {}\n\nTry it:\n", files.join(", "), template.about());
    commands.iter().for_each(|command| text.push_str(&format!("  {command}\n")));
    text.push_str("\nThen change the file. `wonder explain TOPIC` says what can stand in it");
    text.push_str(
        ", `wonder validate FILE` whether it does;\n`wonder init --list` has more to start from.\n",
    );
    screen.print(&Text::block(&text))?;
    Ok(Exit::Fine)
}

/// All of its files, or none.
fn write(template: &Template, directory: &Path) -> Result<(), Fault> {
    let there: Vec<&str> =
        template.files.iter().map(|(file, _)| *file).filter(|file| directory.join(file).exists()).collect();
    if !there.is_empty() {
        let message = format!("{} is there already, and nothing was written", there.join(", "));
        return Err(Fault::usage(message).help("go to another directory, or move it away"));
    }
    for (file, text) in template.files {
        let mut options = std::fs::OpenOptions::new();
        let written = options.write(true).create_new(true).open(directory.join(file));
        let written = written.and_then(|mut open| std::io::Write::write_all(&mut open, text.as_bytes()));
        written.map_err(|error| Fault::usage(format!("{file}: cannot write the file: {error}")))?;
    }
    Ok(())
}

fn unknown(name: &str) -> Fault {
    let names = TEMPLATES.iter().map(|template| template.name);
    let help = match nearest(name, names.clone()) {
        Some(near) => format!("did you mean `{near}`? `wonder init --list` says what each is"),
        None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
    };
    Fault::usage(format!("there is no template `{name}`")).help(help)
}

fn list(screen: &Screen) -> Result<Exit, Fault> {
    if screen.json {
        let all = TEMPLATES.iter().map(|template| {
            let files: Vec<&str> = template.files.iter().map(|(file, _)| *file).collect();
            json!({"template": template.name, "about": template.about(), "files": files})
        });
        screen.print_json(&all.collect::<Vec<_>>())?;
        return Ok(Exit::Fine);
    }
    let width = TEMPLATES.iter().map(|template| template.name.len()).max().unwrap_or(0);
    let lines = TEMPLATES.iter().map(|template| format!("{:width$}  {}\n", template.name, template.about()));
    screen.print(&Text::block(&lines.collect::<String>()))?;
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_a_template_and_says_what_it_does() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/recipes");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let is_test = |file: &std::ffi::OsString| file.to_string_lossy().ends_with(".test.yaml");
        for file in files.filter(|file| file != "README.md" && !is_test(file)) {
            let known = TEMPLATES.iter().flat_map(|template| template.files).any(|(name, _)| file == *name);
            assert!(known, "{file:?} is in no template");
        }
        for template in TEMPLATES {
            assert!(template.about().ends_with('.'), "{}", template.about());
            assert!(!template.commands().is_empty(), "{} does not say how it is run", template.name);
        }
    }
}
