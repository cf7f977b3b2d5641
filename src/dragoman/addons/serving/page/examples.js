// The example sentence, in the most common languages.

export const EXAMPLES = {
  ar: "يلعب طفلان في الحديقة.",
  cs: "Dvě děti si hrají v parku.",
  da: "To børn leger i parken.",
  de: "Zwei Kinder spielen im Park.",
  en: "Two children are playing in the park.",
  es: "Dos niños juegan en el parque.",
  fi: "Kaksi lasta leikkii puistossa.",
  fr: "Deux enfants jouent dans le parc.",
  he: "שני ילדים משחקים בפארק.",
  it: "Due bambini giocano nel parco.",
  ja: "二人の子供が公園で遊んでいます。",
  nl: "Twee kinderen spelen in het park.",
  pl: "Dwoje dzieci bawi się w parku.",
  pt: "Duas crianças brincam no parque.",
  ro: "Doi copii se joacă în parc.",
  ru: "Двое детей играют в парке.",
  sv: "Två barn leker i parken.",
  tr: "İki çocuk parkta oynuyor.",
  uk: "Двоє дітей граються в парку.",
  zh: "两个孩子在公园里玩耍。",
};
