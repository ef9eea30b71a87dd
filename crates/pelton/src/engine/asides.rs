//! Questions that tools ask a model beside the conversation: paid from the session's purse, and waited for.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton_model::{Client, Source, catalogue};

use super::Engine;
use crate::aside::{Aside, AsideQuestion, Told, Whom};
use crate::turn::side::{self, SideQuestion, SideSender};
use crate::turn::spending::{Spending, Wish};

/// Asks for the tools of one submission.
struct Asides {
    client: Client,
    spending: Arc<Spending>,
    /// The small model, if there is one that can be paid.
    small: Option<String>,
    /// The model of the conversation.
    main: String,
    /// Who tells what becomes of the questions meanwhile.
    news: SideSender,
}

impl Engine {
    /// Who asks a model for tools and hooks; `news` hears what becomes of the questions meanwhile.
    pub(super) fn aside(&self, news: SideSender) -> Arc<dyn Aside> {
        Arc::new(Asides {
            client: self.kin.client.clone(),
            spending: Arc::clone(&self.kin.spending),
            small: self.small_model(),
            main: self.options.model.clone(),
            news,
        })
    }
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
            Whom::Named(model) => Some(catalogue::resolve(&model)),
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
