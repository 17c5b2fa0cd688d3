//! What can be said of artifacts before they are written: their types, and names that nothing is put into.

use wonder_lang::artifact::{is_media_type, name_problem};
use wonder_lang::def::{ArtifactType, ArtifactWrite, Spot, Text};
use wonder_lang::problem::Problem;

use super::Check;
use crate::codes;

impl Check<'_> {
    pub(super) fn artifact_fields(&mut self, write: &ArtifactWrite, spot: Spot) {
        if write.content.is_some() == write.path.is_some() {
            self.bad_fields(
                spot,
                "`artifact_write` needs `content` or `path`, and not both",
                "expected one of the two",
            );
        }
        let unknown = |of: &&Text| !self.bundle.artifact_types.contains_key(&of.text);
        if let Some(of) = write.artifact_type.as_ref().filter(unknown)
            && self.is_plain(of)
        {
            let known = self.bundle.artifact_types.keys().map(|name| &**name);
            self.unknown(codes::UNKNOWN_ARTIFACT_TYPE, of, "artifact type", known);
        }
        if self.is_plain(&write.name)
            && let Some(why) = name_problem(&write.name.text)
        {
            let message = format!("`{}` is no name of an artifact: {why}", write.name);
            self.report(
                Problem::error(codes::BAD_ARTIFACT, write.name.spot, message)
                    .label("expected a name such as `report.md` or `plots/first.png`"),
            );
        }
    }

    pub(super) fn artifact_type(&mut self, of: &ArtifactType) {
        self.schema(of.schema.as_ref(), "`schema`");
        let bad = of.media_type.as_ref().filter(|text| !is_media_type(text));
        if let Some(media_type) = bad {
            let message = format!("`{media_type}` is no media type");
            self.report(
                Problem::error(codes::BAD_ARTIFACT, of.spot, message)
                    .label("expected `type/subtype` in the `media_type` of this one, as `text/markdown`"),
            );
        }
    }

    /// Whether the text stands for itself, so that it is known now. One that does not parse is reported elsewhere.
    fn is_plain(&mut self, text: &Text) -> bool {
        self.parsed.template(text).is_ok_and(|template| template.is_plain())
    }
}
