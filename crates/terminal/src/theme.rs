//! Colours: the looks of each style on a dark, a light or an unknown background.
//!
//! Invariant: every colour of a theme has a contrast of at least 4.5 to its background, which a test computes. Without
//! colours, styles are told apart by marks and attributes alone.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::Style;

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// The name of a theme.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThemeName {
    /// By the background of the terminal, if it reports one.
    #[default]
    Auto,
    Dark,
    Light,
    /// The sixteen colours of the terminal.
    Ansi,
    Contrast,
    /// No colours.
    Plain,
}

/// All names, as they are spelled, and their meaning.
pub const NAMES: &[(&str, ThemeName, &str)] = &[
    ("auto", ThemeName::Auto, "dark or light, by the background of the terminal"),
    ("dark", ThemeName::Dark, "for a dark background"),
    ("light", ThemeName::Light, "for a light background"),
    ("ansi", ThemeName::Ansi, "the 16 colours of the terminal"),
    ("contrast", ThemeName::Contrast, "high contrast"),
    ("plain", ThemeName::Plain, "no colours"),
];

/// The colours in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    name: ThemeName,
    /// Whether colours are wanted at all.
    has_colours: bool,
    /// Whether the terminal shows 24-bit colours.
    has_rgb: bool,
    /// Whether the terminal has told that its background is light.
    is_light: Option<bool>,
    /// The colours of a theme of the user.
    own: Option<Palette>,
}

/// A theme of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTheme {
    pub name: String,
    palette: Palette,
}

impl OwnTheme {
    /// Reads a theme: `base` names the theme whose colours it has where it names none. Returns warnings about colours that
    /// are hard to read.
    ///
    /// # Errors
    /// If a colour or its name is not known.
    pub fn read(name: &str, colours: &BTreeMap<String, String>) -> Result<(Self, Vec<String>), String> {
        let mut palette = match colours.get("base").map_or("dark", String::as_str) {
            "dark" => DARK,
            "light" => LIGHT,
            "contrast" => CONTRAST,
            other => return Err(format!("theme `{name}`: unknown base `{other}`; there are dark, light and contrast")),
        };
        for (member, colour) in colours.iter().filter(|(member, _)| *member != "base") {
            let place = palette.member(member).ok_or_else(|| {
                let known = MEMBERS.join(", ");
                format!("theme `{name}`: unknown colour `{member}`; there are {known}")
            })?;
            *place =
                Rgb::read(colour).ok_or_else(|| format!("theme `{name}`: `{colour}` is no colour like #1e90ff"))?;
        }
        let mut warnings = Vec::new();
        for member in MEMBERS.iter().filter(|member| **member != "background") {
            let background = palette.background;
            let contrast = palette.member(member).map_or(LEAST_CONTRAST, |colour| contrast(*colour, background));
            if contrast < LEAST_CONTRAST {
                warnings.push(format!(
                    "theme `{name}`: `{member}` has a contrast of {contrast:.1}, and {LEAST_CONTRAST} can be read"
                ));
            }
        }
        Ok((Self { name: name.to_owned(), palette }, warnings))
    }
}

/// The least contrast of text to its background that can be read well.
const LEAST_CONTRAST: f64 = 4.5;

/// The contrast of two colours, from 1 to 21.
fn contrast(one: Rgb, other: Rgb) -> f64 {
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

impl Rgb {
    /// A colour as `#rrggbb`.
    fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        Some(Self(part(0)?, part(2)?, part(4)?))
    }
}

impl Theme {
    /// A theme for a terminal; without `has_colours` it has none.
    #[must_use]
    pub fn new(name: ThemeName, has_colours: bool, has_rgb: bool) -> Self {
        Self { name, has_colours, has_rgb, is_light: None, own: None }
    }

    /// The theme with a name, which may be one of the user; without a name the usual one. An unknown name is told.
    #[must_use]
    pub fn named(name: Option<&str>, own: &[OwnTheme], has_colours: bool, has_rgb: bool) -> (Self, Option<String>) {
        let mut theme = Self::new(ThemeName::default(), has_colours, has_rgb);
        let problem = name.and_then(|name| theme.take(name, own).err());
        (theme, problem)
    }

    /// Changes to the theme with a name, which may be one of the user.
    ///
    /// # Errors
    /// If there is no such theme.
    pub fn take(&mut self, name: &str, own: &[OwnTheme]) -> Result<(), String> {
        if let Some(own) = own.iter().find(|own| own.name == name) {
            self.wear(own);
            return Ok(());
        }
        let Some((_, known, _)) = NAMES.iter().find(|(known, ..)| *known == name) else {
            let own = own.iter().map(|own| own.name.as_str());
            let names: Vec<&str> = NAMES.iter().map(|(name, ..)| *name).chain(own).collect();
            return Err(format!("unknown theme `{name}`; there are {}", names.join(", ")));
        };
        self.choose(*known);
        Ok(())
    }

    /// The name as it is spelled, unless it is a theme of the user.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let found = NAMES.iter().find(|(_, name, _)| *name == self.name && self.own.is_none());
        found.map(|(name, ..)| *name)
    }

    /// The reason why the colours of this theme are not shown, if they are not.
    #[must_use]
    pub fn without_effect(self) -> Option<&'static str> {
        let has_own =
            self.own.is_some() || matches!(self.name, ThemeName::Dark | ThemeName::Light | ThemeName::Contrast);
        match (self.has_colours, self.has_rgb) {
            (false, _) => Some("colours are off (NO_COLOR)"),
            (true, false) if has_own => Some("COLORTERM is not `truecolor`, so the terminal's 16 colours stay"),
            _ => None,
        }
    }

    /// The same with another name.
    pub fn choose(&mut self, name: ThemeName) {
        (self.name, self.own) = (name, None);
    }

    /// The same with the colours of a theme of the user.
    pub fn wear(&mut self, theme: &OwnTheme) {
        (self.name, self.own) = (ThemeName::Auto, Some(theme.palette));
    }

    /// The terminal has told its background.
    pub fn take_background(&mut self, background: Rgb) {
        self.is_light = Some(luminance(background) > 0.4);
    }

    fn palette(self) -> Option<Palette> {
        if !self.has_rgb {
            return None;
        }
        if self.own.is_some() {
            return self.own;
        }
        match (self.name, self.is_light) {
            (ThemeName::Dark, _) | (ThemeName::Auto, Some(false)) => Some(DARK),
            (ThemeName::Light, _) | (ThemeName::Auto, Some(true)) => Some(LIGHT),
            (ThemeName::Contrast, _) => Some(CONTRAST),
            (ThemeName::Auto | ThemeName::Ansi | ThemeName::Plain, _) => None,
        }
    }

    /// The SGR parameters of a style.
    pub fn code(self, style: Style) -> Option<Cow<'static, str>> {
        if self.name == ThemeName::Plain || !self.has_colours {
            return attributes(style).map(Cow::Borrowed);
        }
        let Some(palette) = self.palette() else { return style.code().map(Cow::Borrowed) };
        let Some(Rgb(red, green, blue)) = palette.of(style) else { return attributes(style).map(Cow::Borrowed) };
        let before = attributes(style).filter(|_| style != Style::Dim).map(|code| format!("{code};"));
        Some(format!("{}38;2;{red};{green};{blue}", before.unwrap_or_default()).into())
    }
}

/// The attributes that tell a style apart without colours.
fn attributes(style: Style) -> Option<&'static str> {
    match style {
        Style::Bold | Style::Keyword => Some("1"),
        Style::Dim => Some("2"),
        Style::Italic | Style::Comment => Some("3"),
        Style::Heading => Some("1;4"),
        Style::Link => Some("4"),
        // A line under words would hide underscores.
        Style::Selected | Style::Bar | Style::AddedWord | Style::RemovedWord => Some("7"),
        Style::Plain
        | Style::Green
        | Style::Yellow
        | Style::Red
        | Style::Code
        | Style::Gutter
        | Style::Hang
        | Style::Quoted
        | Style::Number
        | Style::Type
        | Style::Name => None,
    }
}

/// The colours of a theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Palette {
    background: Rgb,
    dim: Rgb,
    green: Rgb,
    yellow: Rgb,
    red: Rgb,
    heading: Rgb,
    code: Rgb,
    link: Rgb,
    keyword: Rgb,
    quoted: Rgb,
    number: Rgb,
    of_type: Rgb,
    name: Rgb,
}

/// The names of the colours in `config.toml`.
const MEMBERS: &[&str] = &[
    "background",
    "dim",
    "green",
    "yellow",
    "red",
    "heading",
    "code",
    "link",
    "keyword",
    "quoted",
    "number",
    "type",
    "name",
];

impl Palette {
    fn member(&mut self, name: &str) -> Option<&mut Rgb> {
        Some(match name {
            "background" => &mut self.background,
            "dim" => &mut self.dim,
            "green" => &mut self.green,
            "yellow" => &mut self.yellow,
            "red" => &mut self.red,
            "heading" => &mut self.heading,
            "code" => &mut self.code,
            "link" => &mut self.link,
            "keyword" => &mut self.keyword,
            "quoted" => &mut self.quoted,
            "number" => &mut self.number,
            "type" => &mut self.of_type,
            "name" => &mut self.name,
            _ => return None,
        })
    }

    fn of(&self, style: Style) -> Option<Rgb> {
        Some(match style {
            Style::Plain | Style::Bold | Style::Italic | Style::Selected | Style::Bar => return None,
            Style::Dim | Style::Gutter | Style::Hang | Style::Comment => self.dim,
            Style::Green | Style::AddedWord => self.green,
            Style::Yellow => self.yellow,
            Style::Red | Style::RemovedWord => self.red,
            Style::Heading => self.heading,
            Style::Code => self.code,
            Style::Link => self.link,
            Style::Keyword => self.keyword,
            Style::Quoted => self.quoted,
            Style::Number => self.number,
            Style::Type => self.of_type,
            Style::Name => self.name,
        })
    }
}

const DARK: Palette = Palette {
    background: Rgb(30, 30, 30),
    dim: Rgb(160, 160, 160),
    green: Rgb(130, 200, 130),
    yellow: Rgb(225, 195, 110),
    red: Rgb(245, 135, 130),
    heading: Rgb(130, 190, 250),
    code: Rgb(120, 205, 215),
    link: Rgb(130, 180, 250),
    keyword: Rgb(205, 160, 235),
    quoted: Rgb(165, 205, 130),
    number: Rgb(230, 170, 120),
    of_type: Rgb(225, 195, 110),
    name: Rgb(130, 190, 250),
};

const LIGHT: Palette = Palette {
    background: Rgb(250, 250, 250),
    dim: Rgb(100, 100, 100),
    green: Rgb(20, 110, 40),
    yellow: Rgb(130, 90, 0),
    red: Rgb(180, 30, 30),
    heading: Rgb(20, 80, 170),
    code: Rgb(0, 100, 115),
    link: Rgb(20, 80, 170),
    keyword: Rgb(125, 40, 160),
    quoted: Rgb(60, 105, 10),
    number: Rgb(150, 70, 10),
    of_type: Rgb(130, 90, 0),
    name: Rgb(20, 80, 170),
};

const CONTRAST: Palette = Palette {
    background: Rgb(0, 0, 0),
    dim: Rgb(210, 210, 210),
    green: Rgb(100, 255, 100),
    yellow: Rgb(255, 235, 80),
    red: Rgb(255, 150, 150),
    heading: Rgb(130, 215, 255),
    code: Rgb(110, 250, 255),
    link: Rgb(150, 200, 255),
    keyword: Rgb(240, 190, 255),
    quoted: Rgb(200, 255, 150),
    number: Rgb(255, 205, 140),
    of_type: Rgb(255, 235, 80),
    name: Rgb(130, 215, 255),
};

/// The relative luminance, from 0 (black) to 1 (white).
fn luminance(Rgb(red, green, blue): Rgb) -> f64 {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.039_28 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[Style] = &[
        Style::Dim,
        Style::Green,
        Style::Yellow,
        Style::Red,
        Style::Heading,
        Style::Code,
        Style::Gutter,
        Style::Hang,
        Style::Link,
        Style::Keyword,
        Style::Quoted,
        Style::Comment,
        Style::Number,
        Style::Type,
        Style::Name,
    ];

    #[test]
    fn every_colour_can_be_read_on_its_background() {
        for palette in [DARK, LIGHT, CONTRAST] {
            for style in ALL {
                let colour = palette.of(*style).expect("it has a colour");
                let contrast = contrast(colour, palette.background);
                assert!(contrast >= LEAST_CONTRAST, "{style:?} {contrast:.2}");
            }
        }
    }

    #[test]
    fn a_theme_of_the_user_changes_some_colours_and_is_told_what_cannot_be_read() {
        let colours =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let (mine, warnings) =
            OwnTheme::read("mine", &colours(&[("base", "light"), ("red", "#aa0000"), ("green", "#aaffaa")]))
                .expect("it is one");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("theme `mine`: `green` has a contrast of 1."), "{warnings:?}");
        let mut theme = Theme::new(ThemeName::Auto, true, true);
        theme.wear(&mine);
        assert_eq!(theme.code(Style::Red).as_deref(), Some("38;2;170;0;0"));
        assert_eq!(theme.code(Style::Link).as_deref(), Some("4;38;2;20;80;170"), "the rest is that of the base");
        theme.choose(ThemeName::Dark);
        assert_eq!(theme.code(Style::Red).as_deref(), Some("38;2;245;135;130"));
        for wrong in [[("base", "pink")], [("reed", "#000000")], [("red", "1e90ff")], [("red", "#1e90fg")]] {
            assert!(OwnTheme::read("x", &colours(&wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn without_colours_there_are_none() {
        let mut theme = Theme::new(ThemeName::Dark, false, true);
        theme.choose(ThemeName::Light);
        assert!(theme.without_effect().is_some_and(|why| why.contains("NO_COLOR")));
        assert!(Theme::new(ThemeName::Dark, true, false).without_effect().is_some_and(|why| why.contains("COLORTERM")));
        assert_eq!(Theme::new(ThemeName::Ansi, true, false).without_effect(), None);
        assert_eq!(Theme::new(ThemeName::Dark, true, true).without_effect(), None);
        for style in ALL {
            let code = theme.code(*style).unwrap_or_default();
            assert!(code.split(';').all(|part| part.is_empty() || part.len() == 1), "{style:?} {code}");
        }
    }

    #[test]
    fn the_background_decides_unless_a_theme_is_named() {
        let mut theme = Theme::new(ThemeName::Auto, true, true);
        assert_eq!(theme.code(Style::Red).as_deref(), Some("31"), "an unknown background gets the terminal's colours");
        theme.take_background(Rgb(255, 255, 255));
        assert_eq!(theme.code(Style::Red).as_deref(), Some("38;2;180;30;30"));
        theme.choose(ThemeName::Dark);
        assert_eq!(theme.code(Style::Red).as_deref(), Some("38;2;245;135;130"));
    }

    #[test]
    fn a_name_is_one_of_the_user_or_known_or_told() {
        let (mine, _) = OwnTheme::read("mine", &[("red".to_owned(), "#aa0000".to_owned())].into()).expect("it is one");
        let own = [mine];
        let (theme, problem) = Theme::named(Some("pink"), &own, true, true);
        assert_eq!((theme.name(), theme), (Some("auto"), Theme::named(None, &own, true, true).0));
        assert!(problem.is_some_and(|why| why.contains("contrast, plain, mine")));
        let (mut theme, problem) = Theme::named(Some("mine"), &own, true, true);
        assert_eq!((theme.code(Style::Red).as_deref(), problem), (Some("38;2;170;0;0"), None));
        assert_eq!((theme.take("plain", &own), theme.code(Style::Red)), (Ok(()), None));
        assert_eq!((theme.take("light", &own), theme.name()), (Ok(()), Some("light")), "plain is left again");
    }
}
