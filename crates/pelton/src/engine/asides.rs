//! Questions that tools ask a model beside the conversation: paid from the session's purse, and waited for.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton_model::{Client, Source};

use crate::tools::aside::{Aside, AsideQuestion, Told, Whom};
use crate::turn::side::{self, SideQuestion, SideSender};
use crate::turn::spending::{Spending, Wish};

/// Asks for the tools of one submission.
pub(super) struct Asides {
    pub client: Client,
    pub spending: Arc<Spending>,
    /// The small model, if there is one that can be paid.
    pub small: Option<String>,
    /// The model of the conversation.
    pub main: String,
    /// Who tells what becomes of the questions meanwhile.
    pub news: SideSender,
}

impl Aside for Asides {
    fn has_small(&self) -> bool {
        self.small.is_some()
    }

    fn ask(&self, question: AsideQuestion) -> BoxFuture<'static, Result<Told, String>> {
        let AsideQuestion { purpose, whom, system, prompt, max_tokens, server_tools, searches_max } =
            question;
        let model = match whom {
            Whom::Small => self.small.clone(),
            Whom::Main => Some(self.main.clone()),
        };
        let (client, spending, news) = (self.client.clone(), Arc::clone(&self.spending), self.news.clone());
        async move {
            let model = model.ok_or("there is no small model")?;
            let source = Source::Foreground;
            let question =
                SideQuestion { model, system, prompt, max_tokens, server_tools, searches_max, source };
            loop {
                // Listening begins before the question: an end in between is not missed.
                let freed = spending.freed();
                match question.pay(&spending) {
                    (ask, Wish::Granted(paid)) => {
                        return side::ask(client, ask, paid, purpose, news).await.map(Told::from);
                    }
                    (_, Wish::Refused(why)) => return Err(why),
                    (_, Wish::Later(_)) => freed.await,
                }
            }
        }
        .boxed()
    }
}
