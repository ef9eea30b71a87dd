//! Directories: who may do what with them is part of what a command can change.

use super::*;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[tokio::test]
async fn pit_S6_modes_of_directories_are_named_and_come_back() {
    let mut stage = Stage::new();
    stage.put("shut/in.txt", "in\n");
    stage.put("gone/deep/in.txt", "in\n");
    stage.put("plain/in.txt", "in\n");
    set_mode(&stage.path("shut"), 0o750);
    set_mode(&stage.path("gone"), 0o2770);
    set_mode(&stage.path("gone/deep"), 0o500);
    let root_mode = mode(&stage.work());
    let before = stage.all();
    let message = stage.says(1).await;
    stage
        .shell(|| {
            set_mode(&stage.path("shut"), 0o777);
            set_mode(&stage.work(), 0o711);
            set_mode(&stage.path("gone/deep"), 0o700);
            fs::remove_dir_all(stage.path("gone")).unwrap();
            stage.put("new/made.txt", "made\n");
            set_mode(&stage.path("new"), 0o555);
        })
        .await;
    let after = stage.all();
    stage.restart();

    let preview = stage.history.preview(message).unwrap();
    let kind = |name: &Path| preview.files.iter().find(|file| file.path == name).map(|file| file.kind);
    assert_eq!(kind(&stage.path("shut")), Some(RewoundKind::Restored));
    assert_eq!(kind(&stage.work()), Some(RewoundKind::Restored));
    assert_eq!(kind(&stage.path("plain")), None, "nobody touched it");
    assert_eq!(stage.all(), after, "a preview changes nothing");

    let rewound = stage.history.rewind(message, Conflicts::Leave).unwrap();
    assert_eq!(rewound, preview);
    assert_eq!(stage.all(), before);
    assert_eq!(mode(&stage.work()), root_mode);
    stage.history.undo(Conflicts::Leave).unwrap();
    assert_eq!((stage.all(), mode(&stage.work())), (after, 0o711));
}

#[tokio::test]
async fn modes_that_others_gave_are_theirs() {
    let stage = Stage::new();
    for name in ["since", "between", "before"] {
        stage.put(&format!("{name}/in.txt"), "in\n");
        set_mode(&stage.path(name), 0o755);
    }
    stage.shell(|| {}).await;
    set_mode(&stage.path("before"), 0o711);
    let message = stage.says(1).await;
    stage
        .shell(|| ["since", "between", "before"].iter().for_each(|name| set_mode(&stage.path(name), 0o700)))
        .await;
    set_mode(&stage.path("since"), 0o750);
    set_mode(&stage.path("between"), 0o750);
    stage.shell(|| set_mode(&stage.path("between"), 0o777)).await;
    let rewound = stage.history.rewind(message, Conflicts::Leave).unwrap();
    let words =
        ["between was changed by somebody else in between", "since was changed by somebody else afterwards"];
    assert_eq!(left(&rewound), words);
    let modes = || ["since", "between", "before"].map(|name| mode(&stage.path(name)));
    assert_eq!(modes(), [0o750, 0o777, 0o711]);
    stage.history.rewind(message, Conflicts::Overwrite).unwrap();
    assert_eq!(modes(), [0o755, 0o755, 0o711]);
}
