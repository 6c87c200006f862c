//! The sources as facts: every path used, every literal, every item, without tests and comments.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// One source file below `src/`.
pub(super) struct Source {
    /// The path below `src/`, with `/` separators.
    pub(super) name: String,
    /// The whole text.
    pub(super) text: String,
    /// Every path used outside tests, fully resolved: `crate::store::lock`, `std::fs::File`.
    pub(super) paths: Vec<String>,
    /// Every string literal outside tests and doc comments.
    pub(super) literals: Vec<String>,
    /// Every identifier outside tests.
    pub(super) words: Vec<String>,
    /// Method names that are called outside tests.
    pub(super) calls: Vec<String>,
    /// Items declared `pub` without a restriction, outside tests.
    pub(super) public: Vec<String>,
    /// Functions and impl blocks declared at the top level, outside tests.
    pub(super) logic: usize,
}

impl Source {
    /// Returns the first folder, or the file name for files directly below `src/`.
    pub(super) fn room(&self) -> &str {
        let first = self.name.split('/').next().unwrap_or("");
        first.strip_suffix(".rs").unwrap_or(first)
    }
}

/// Reads every source file of the library and the binary.
pub(super) fn all() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    files.iter().map(|file| read(&root, file)).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a source folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => collect(&path, files),
            false if path.extension().is_some_and(|end| end == "rs") => files.push(path),
            false => {}
        }
    }
}

fn read(root: &Path, file: &Path) -> Source {
    let text = fs::read_to_string(file).expect("a readable source");
    let name = file.strip_prefix(root).expect("below the root");
    let name = name.to_string_lossy().replace('\\', "/");
    let tree = syn::parse_file(&text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    let mut facts = Facts {
        module: module_path(&name),
        source: Source {
            name,
            text,
            paths: Vec::new(),
            literals: Vec::new(),
            words: Vec::new(),
            calls: Vec::new(),
            public: Vec::new(),
            logic: 0,
        },
    };
    facts.visit_file(&tree);
    facts.source.logic = tree.items.iter().filter(|item| is_logic(item)).count();
    facts.source
}

fn module_path(name: &str) -> Vec<String> {
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let parts = stem.split('/').map(str::to_owned);
    parts
        .filter(|part| !matches!(part.as_str(), "mod" | "lib" | "main"))
        .collect()
}

fn is_logic(item: &syn::Item) -> bool {
    match item {
        syn::Item::Fn(item) => !is_test(&item.attrs),
        syn::Item::Impl(item) => !is_test(&item.attrs),
        _ => false,
    }
}

fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let cfg = attr.path().is_ident("cfg") && {
            let syn::Meta::List(list) = &attr.meta else {
                return false;
            };
            list.tokens.to_string() == "test"
        };
        cfg || attr.path().is_ident("test")
    })
}

struct Facts {
    module: Vec<String>,
    source: Source,
}

impl Facts {
    fn record(&mut self, segments: &[String]) {
        let resolved = self.resolve(segments);
        self.source.paths.push(resolved.join("::"));
    }

    fn resolve(&self, segments: &[String]) -> Vec<String> {
        let mut base: Vec<String> = Vec::new();
        let mut rest = segments;
        match segments.first().map(String::as_str) {
            Some("self") => {
                base.extend(self.module.clone());
                rest = &segments[1..];
            }
            Some("super") => {
                base.extend(self.module.clone());
                while rest.first().is_some_and(|word| word == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            _ => return segments.to_vec(),
        }
        base.insert(0, "crate".to_owned());
        base.extend_from_slice(rest);
        base
    }

    fn flatten(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let mut here = prefix.to_vec();
        match tree {
            syn::UseTree::Path(path) => {
                here.push(path.ident.to_string());
                self.flatten(&path.tree, &here);
            }
            syn::UseTree::Group(group) => {
                for item in &group.items {
                    self.flatten(item, prefix);
                }
            }
            syn::UseTree::Name(name) => {
                here.push(name.ident.to_string());
                self.record(&here);
            }
            syn::UseTree::Rename(name) => {
                here.push(name.ident.to_string());
                self.record(&here);
            }
            syn::UseTree::Glob(_) => self.record(&here),
        }
    }

    /// Reads what a macro is given: paths, words and literals stand there as bare tokens.
    fn tokens(&mut self, stream: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in stream {
            match &token {
                TokenTree::Ident(word) => {
                    self.source.words.push(word.to_string());
                    if colons != 2 && !path.is_empty() {
                        self.record(&std::mem::take(&mut path));
                    }
                    path.push(word.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                        self.source.literals.push(text.value());
                    }
                }
                TokenTree::Punct(_) => {}
            }
            if !path.is_empty() {
                self.record(&std::mem::take(&mut path));
            }
            colons = 0;
        }
        if !path.is_empty() {
            self.record(&path);
        }
    }

    fn note_public(&mut self, visibility: &syn::Visibility, name: &dyn std::fmt::Display) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            self.source.public.push(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Facts {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attrs, visibility, name): (&[syn::Attribute], _, String) = match item {
            syn::Item::Fn(i) => (&i.attrs, Some(&i.vis), i.sig.ident.to_string()),
            syn::Item::Struct(i) => (&i.attrs, Some(&i.vis), i.ident.to_string()),
            syn::Item::Enum(i) => (&i.attrs, Some(&i.vis), i.ident.to_string()),
            syn::Item::Trait(i) => (&i.attrs, Some(&i.vis), i.ident.to_string()),
            syn::Item::Const(i) => (&i.attrs, Some(&i.vis), i.ident.to_string()),
            syn::Item::Static(i) => (&i.attrs, Some(&i.vis), i.ident.to_string()),
            syn::Item::Type(i) => (&i.attrs, Some(&i.vis), i.ident.to_string()),
            syn::Item::Mod(i) => (&i.attrs, None, i.ident.to_string()),
            syn::Item::Impl(i) => (&i.attrs, None, String::new()),
            syn::Item::Use(i) => (&i.attrs, None, String::new()),
            syn::Item::Macro(i) => (&i.attrs, None, String::new()),
            _ => (&[], None, String::new()),
        };
        if is_test(attrs) {
            return;
        }
        if let Some(visibility) = visibility {
            self.note_public(visibility, &name);
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.flatten(&item.tree, &[]);
    }

    fn visit_attribute(&mut self, attr: &'ast syn::Attribute) {
        if !attr.path().is_ident("doc")
            && let syn::Meta::List(list) = &attr.meta
        {
            self.tokens(list.tokens.clone());
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.record(&segments);
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.source.calls.push(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_ident(&mut self, word: &'ast proc_macro2::Ident) {
        self.source.words.push(word.to_string());
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.source.literals.push(literal.value());
    }
}
