//! What the files of a crate need of each other.
//!
//! - *Circles*: files that need each other, over any number of steps. A module and those below it may need each other.
//! - *Arrows*: a crate's folders and files stand on storeys. A file needs what is on storeys below its own; any other
//!   folder that it needs is an arrow back up. The root of the crate stands on top.
//! - *Implementations*: the files that have `impl` blocks of a type, those of traits aside.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use syn::visit::{Visit, visit_item_impl, visit_item_mod, visit_path};
use syn::{Attribute, File, Item, ItemImpl, ItemMod, ItemUse, Type, UseTree, Visibility};

/// A path of names: of a module within its crate, or of something in one.
type Names = Vec<String>;

/// The files of a crate by their modules; the root of the crate has no name.
pub struct Crate(BTreeMap<Names, Module>);

/// What a file says about names.
#[derive(Default)]
struct Module {
    /// Names that it passes on, and what they stand for.
    passed: BTreeMap<String, Names>,
    /// Modules whose names it passes on.
    passed_whole: Vec<Names>,
    /// Names that it defines.
    defined: BTreeSet<String>,
    /// Paths that it uses.
    used: Vec<Names>,
    /// Modules of it that are only part of tests.
    tests: Vec<Names>,
    /// Types that it has `impl` blocks of, those of traits aside.
    impls: BTreeSet<String>,
}

impl Crate {
    /// The crate whose sources are in a folder.
    pub fn read(sources: &Path) -> Crate {
        let mut files = BTreeMap::new();
        let mut folders = vec![(sources.to_path_buf(), Names::new())];
        while let Some((folder, names)) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder of sources") {
                let path = entry.expect("an entry").path();
                let stem = path.file_stem().expect("a name").to_str().expect("a plain name").to_string();
                let own = |stem: &str| names.iter().cloned().chain([stem.to_string()]).collect::<Names>();
                if path.is_dir() {
                    folders.push((path, own(&stem)));
                } else if path.extension().is_some_and(|ending| ending == "rs") && stem != "tests" {
                    let is_root = ["mod", "lib", "main"].contains(&stem.as_str());
                    let module = if is_root { names.clone() } else { own(&stem) };
                    files.insert(module, std::fs::read_to_string(path).expect("a source"));
                }
            }
        }
        Crate::of(&files)
    }

    fn of(files: &BTreeMap<Names, String>) -> Crate {
        let parse = |text: &String| syn::parse_file(text).expect("Rust");
        let modules: BTreeSet<&Names> = files.keys().collect();
        let module = |(names, text): (&Names, &String)| (names.clone(), Module::of(names, &parse(text), &modules));
        let mut all: BTreeMap<Names, Module> = files.iter().map(module).collect();
        let tests: Vec<Names> = all.values().flat_map(|module| module.tests.clone()).collect();
        all.retain(|names, _| !tests.iter().any(|test| names.starts_with(test)));
        Crate(all)
    }

    /// The modules below the root.
    pub fn tops(&self) -> BTreeSet<&str> {
        self.0.keys().filter_map(|names| names.first()).map(String::as_str).collect()
    }

    /// Each file with each folder that it needs though it stands on no storey below: storeys are in order from the
    /// lowest on. A folder may be named as `a::b`; then it stands apart from the rest of `a`.
    pub fn arrows(&self, storeys: &[Vec<&str>]) -> BTreeSet<(String, String)> {
        let mut arrows = BTreeSet::new();
        for (from, module) in &self.0 {
            let Some((own, own_floor)) = stand(storeys, from) else { continue };
            for to in module.used.iter().filter_map(|path| self.file_of(path, 8)) {
                let (folder, floor) = stand(storeys, to).unwrap_or((String::new(), storeys.len()));
                if folder != own && floor >= own_floor {
                    arrows.insert((from.join("::"), folder));
                }
            }
        }
        arrows
    }

    /// The files that have `impl` blocks of each type, by where the type is defined.
    pub fn impls(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (names, module) in &self.0 {
            for of in &module.impls {
                let imports = module.used.iter().filter(|path| path.last() == Some(of));
                let globs = module.used.iter().filter(|path| self.0.contains_key(*path));
                let whole = globs.map(|path| [path.as_slice(), std::slice::from_ref(of)].concat());
                let paths: Vec<Names> = imports.cloned().chain(whole).collect();
                let is_its = |file: &&Names| self.0[*file].defined.contains(of);
                let found = paths.iter().filter_map(|path| self.file_of(path, 8)).find(is_its);
                let file = if module.defined.contains(of) { names } else { found.unwrap_or(names) };
                let of = file.iter().chain([of]).cloned().collect::<Names>().join("::");
                all.entry(of).or_default().insert(names.join("::"));
            }
        }
        all
    }

    /// The file in which a path ends.
    fn file_of(&self, path: &[String], steps: usize) -> Option<&Names> {
        let (names, module) = (0..=path.len()).rev().find_map(|length| self.0.get_key_value(&path[..length]))?;
        let Some((name, rest)) = path[names.len()..].split_first() else { return Some(names) };
        if steps == 0 || module.defined.contains(name) {
            return Some(names);
        }
        let on = |to: &Names| self.file_of(&[to.as_slice(), rest].concat(), steps - 1);
        let whole = module.passed_whole.iter().find(|of| self.0.get(*of).is_some_and(|of| of.defined.contains(name)));
        module.passed.get(name).and_then(on).or(whole.or(Some(names)))
    }

    /// The files that each file needs, apart from those above and below it.
    fn needs(&self) -> BTreeMap<&Names, BTreeSet<&Names>> {
        let is_line = |a: &Names, b: &Names| a.starts_with(b) || b.starts_with(a);
        let of = |(names, module): (&'_ Names, &'_ Module)| -> BTreeSet<&Names> {
            module.used.iter().filter_map(|path| self.file_of(path, 8)).filter(|to| !is_line(names, to)).collect()
        };
        self.0.iter().map(|(names, module)| (names, of((names, module)))).collect()
    }

    /// Sets of two or more files that need each other.
    pub fn circles(&self) -> Vec<BTreeSet<String>> {
        let needs = self.needs();
        let reached: BTreeMap<_, _> = needs.keys().map(|from| (*from, reach(from, &needs))).collect();
        let circle = |of: &&Names| -> BTreeSet<String> {
            let all = reached[*of].iter().filter(|other| reached[**other].contains(*of));
            all.map(|names| names.join("::")).collect()
        };
        let circles = needs.keys().map(circle).filter(|all| all.len() > 1);
        circles.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Storeys as they are written: `lowest < one beside < highest`.
pub fn storeys_of(text: &str) -> Vec<Vec<&str>> {
    text.split('<').map(|storey| storey.split_whitespace().collect()).collect()
}

/// The folder in which a file stands, and its storey; `None` for what no storey names.
fn stand(storeys: &[Vec<&str>], names: &Names) -> Option<(String, usize)> {
    let own = |length: &usize| {
        let folder = names[..*length].join("::");
        let floor = storeys.iter().position(|all| all.contains(&folder.as_str()))?;
        Some((folder, floor))
    };
    (1..=names.len()).rev().find_map(|length| own(&length))
}

/// The files that one needs, over any number of steps.
fn reach<'a>(from: &'a Names, needs: &BTreeMap<&'a Names, BTreeSet<&'a Names>>) -> BTreeSet<&'a Names> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        open.extend(needs[next].iter().filter(|to| reached.insert(**to)));
    }
    reached
}

impl Module {
    fn of(names: &Names, file: &File, modules: &BTreeSet<&Names>) -> Module {
        let mut reader = Reader { names, modules, module: Module::default() };
        reader.module.defined.extend(file.items.iter().filter_map(name_of));
        reader.visit_file(file);
        reader.module
    }
}

/// The name that an item defines.
fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// Reads one file.
struct Reader<'a> {
    names: &'a Names,
    modules: &'a BTreeSet<&'a Names>,
    module: Module,
}

impl Reader<'_> {
    /// A path from the root of the crate; `None` if it leads into another crate.
    fn absolute(&self, path: &[String]) -> Option<Names> {
        let (first, rest) = path.split_first()?;
        let above = |count: usize| self.names[..self.names.len().saturating_sub(count)].to_vec();
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([self.names.as_slice(), rest].concat()),
            "super" => {
                let count = path.iter().take_while(|name| *name == "super").count();
                Some([above(count).as_slice(), &path[count..]].concat())
            }
            _ => {
                let child = [self.names.as_slice(), &path[..1]].concat();
                self.modules.contains(&child).then(|| [self.names.as_slice(), path].concat())
            }
        }
    }

    fn leaves(&mut self, tree: &UseTree, before: &[String], passes_on: bool) {
        let with = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => self.leaves(&path.tree, &with(path.ident.to_string()), passes_on),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.leaves(tree, before, passes_on)),
            UseTree::Name(name) => self.leaf(with(name.ident.to_string()), name.ident.to_string(), passes_on),
            UseTree::Rename(name) => self.leaf(with(name.ident.to_string()), name.rename.to_string(), passes_on),
            UseTree::Glob(_) => {
                let Some(path) = self.absolute(before) else { return };
                if passes_on { self.module.passed_whole.push(path) } else { self.module.used.push(path) }
            }
        }
    }

    fn leaf(&mut self, path: Names, name: String, passes_on: bool) {
        // `use a::{self, b}` names a.
        let path = if path.len() > 1 && name == "self" { path[..path.len() - 1].to_vec() } else { path };
        let Some(path) = self.absolute(&path) else { return };
        match passes_on {
            true => drop(self.module.passed.insert(name, path)),
            false => self.module.used.push(path),
        }
    }
}

/// Whether something is only part of tests.
fn is_test(attributes: &[Attribute]) -> bool {
    let is_test = |of: &Attribute| of.parse_args::<syn::Ident>().is_ok_and(|of| of == "test");
    attributes.iter().any(|of| of.path().is_ident("cfg") && is_test(of))
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        match is_test(&item.attrs) {
            true => self.module.tests.push([self.names.as_slice(), &[item.ident.to_string()]].concat()),
            false => visit_item_mod(self, item),
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if let (None, Type::Path(of)) = (&item.trait_, &*item.self_ty) {
            self.module.impls.extend(of.path.segments.last().map(|segment| segment.ident.to_string()));
        }
        visit_item_impl(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let passes_on = !matches!(item.vis, Visibility::Inherited);
        if !is_test(&item.attrs) {
            self.leaves(&item.tree, &[], passes_on);
        }
    }

    /// Who may see something is no need.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if ["crate", "super"].contains(&names[0].as_str()) {
            self.module.used.extend(self.absolute(&names));
        }
        visit_path(self, path);
    }
}

#[test]
fn circles_are_found_through_names_that_are_passed_on() {
    let circles = |files: &[(&str, &str)]| of(files).circles();
    let lib = ("", "mod a; mod b; pub use a::A; pub use b::B;");
    assert_eq!(circles(&[lib, ("a", "use crate::B; pub struct A;"), ("b", "pub struct B;")]).len(), 0);
    let both = circles(&[lib, ("a", "use crate::B; pub struct A;"), ("b", "pub struct B; fn f(_: crate::A) {}")]);
    assert_eq!(both, [BTreeSet::from(["a".to_string(), "b".to_string()])]);
    let tested = "pub struct B; #[cfg(test)] mod tests { use crate::A; }";
    assert_eq!(circles(&[lib, ("a", "use crate::B; pub struct A;"), ("b", tested)]).len(), 0, "tests may");
    let family = [("a", "mod c; pub struct A; fn f() { c::g() }"), ("a::c", "use super::A; pub fn g() {}")];
    assert_eq!(circles(&[family[0], family[1], ("", "mod a;")]).len(), 0, "a parent and its child may");
    let over_three = [("a", "use super::b::B; pub struct A;"), ("b", "use crate::c::C; pub struct B;")];
    let third = ("c", "use crate::{a::{self}, b}; pub struct C;");
    assert_eq!(circles(&[("", "mod a; mod b; mod c;"), over_three[0], over_three[1], third])[0].len(), 3);
}

/// A crate of files, each with its module and its text.
fn of(files: &[(&str, &str)]) -> Crate {
    let names =
        |module: &str| -> Names { module.split("::").filter(|name| !name.is_empty()).map(Into::into).collect() };
    Crate::of(&files.iter().map(|(module, text)| (names(module), (*text).into())).collect())
}

#[test]
fn arrows_back_up_are_found() {
    let arrows = |files: &[(&str, &str)], storeys: &str| of(files).arrows(&storeys_of(storeys));
    let arrow = |from: &str, to: &str| (from.to_string(), to.to_string());
    let lib = ("", "mod low; mod high; pub use high::H; pub struct Root;");
    let down = [lib, ("low", "pub struct L;"), ("high", "use crate::low::L; pub struct H;")];
    assert!(arrows(&down, "low < high").is_empty());
    let beside = arrows(&down, "low high");
    assert_eq!(beside, BTreeSet::from([arrow("high", "low")]), "folders of one storey do not see each other");
    let up = [lib, ("low::file", "use crate::{H, Root}; fn f(_: crate::high::H) {}"), ("high", "pub struct H;")];
    let found = arrows(&up, "low < high");
    assert_eq!(found, BTreeSet::from([arrow("low::file", "high"), arrow("low::file", "")]), "once, and to the root");
    let tested = [lib, ("low", "#[cfg(test)] mod tests;"), ("low::tests", "use crate::H;"), ("high", "pub struct H;")];
    assert!(arrows(&tested, "low < high").is_empty(), "tests may");
    let seen = [lib, ("low", "pub(crate) struct L; pub(in crate::high) struct S;"), ("high", "")];
    assert!(arrows(&seen, "low < high").is_empty(), "who may see something is no need");
}

#[test]
fn files_that_implement_a_type_are_counted() {
    let lib = ("", "mod a; mod b; pub use a::A;");
    let files = [
        lib,
        ("a", "pub struct A; impl A {} impl Clone for A {}"),
        ("b", "use crate::A; impl A {} pub struct B<T>(T); impl<T> B<T> {} impl Clone for crate::a::A {}"),
        ("b::c", "use super::B; impl B<u8> {} struct A; impl A {}"),
        ("b::d", "use super::*; impl<T> B<T> {} #[cfg(test)] mod tests { impl super::B<u8> {} }"),
    ];
    let counts: BTreeMap<String, usize> = of(&files).impls().into_iter().map(|(of, files)| (of, files.len())).collect();
    let wanted = [("a::A", 2), ("b::B", 3), ("b::c::A", 1)].map(|(of, count)| (of.to_string(), count));
    assert_eq!(counts, BTreeMap::from(wanted));
}
