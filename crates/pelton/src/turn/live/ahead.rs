//! Z2: calls that are likely to come are made while the model still answers.

use futures::stream::FuturesUnordered;
use serde_json::Value;

use super::Live;
use crate::event::LoopKind;
use crate::tools::Output;
use crate::tools::ahead::Run;
use crate::tools::executor::Call;
use crate::tools::predict::{Past, is_telling, likely_next};

/// What calls of the last answer brought, and calls that follow from it and run already.
#[derive(Default)]
pub(crate) struct Foresight {
    past: Vec<(Call, Value)>,
    pub running: FuturesUnordered<Run>,
}

impl Live<'_> {
    /// Keeps what a result may tell about the next calls.
    pub(super) fn expect_more(&mut self, call: &Call, output: Output) {
        if self.bench.ahead.is_some()
            && !output.is_error
            && is_telling(&call.tool)
            && let Some(detail) = output.detail
        {
            self.foresight.past.push((call.clone(), detail));
        }
    }

    /// Makes the likely next calls. They run while the answer streams.
    pub(super) async fn look_ahead(&mut self) {
        let Some(ahead) = &self.bench.ahead else { return };
        ahead.settle();
        let room = ahead.room();
        let results = std::mem::take(&mut self.foresight.past);
        let past: Vec<Past<'_>> =
            results.iter().map(|(call, detail)| Past { tool: &call.tool, detail }).collect();
        let runs = self.bench.make_ahead(&likely_next(&past, room));
        if !runs.is_empty() {
            let reason = format!("{} likely calls are made while the model answers", runs.len());
            self.foresight.running.extend(runs);
            self.note(LoopKind::Speculation, reason).await;
        }
    }

    /// Tells what came of it.
    pub(super) async fn close_ahead(&mut self) {
        let Some(ahead) = &self.bench.ahead else { return };
        self.foresight.running.clear();
        let figures = ahead.close();
        self.tally.speculation = figures;
        if figures.calls > 0 {
            let reason = format!(
                "of {} calls made ahead {} were used and {} wasted, with {} bytes; {} others were not foreseen",
                figures.calls, figures.hits, figures.wasted_calls, figures.wasted_bytes, figures.misses
            );
            self.note(LoopKind::Speculation, reason).await;
        }
    }
}
