// The example sentence, in the most common languages.

export const EXAMPLES = {
  ar: "يلعب طفلان في الحديقة مع كلبهما.",
  cs: "Dvě děti si hrají v parku se svým psem.",
  da: "To børn leger i parken med deres hund.",
  de: "Zwei Kinder spielen mit ihrem Hund im Park.",
  en: "Two children are playing in the park with their dog.",
  es: "Dos niños juegan en el parque con su perro.",
  fi: "Kaksi lasta leikkii puistossa koiransa kanssa.",
  fr: "Deux enfants jouent dans le parc avec leur chien.",
  he: "שני ילדים משחקים בפארק עם הכלב שלהם.",
  it: "Due bambini giocano nel parco con il loro cane.",
  ja: "二人の子供が公園で犬と遊んでいます。",
  nl: "Twee kinderen spelen in het park met hun hond.",
  pl: "Dwoje dzieci bawi się w parku ze swoim psem.",
  pt: "Duas crianças brincam no parque com o seu cão.",
  ro: "Doi copii se joacă în parc cu câinele lor.",
  ru: "Двое детей играют в парке со своей собакой.",
  sv: "Två barn leker i parken med sin hund.",
  tr: "İki çocuk parkta köpekleriyle oynuyor.",
  uk: "Двоє дітей граються в парку зі своїм собакою.",
  zh: "两个孩子在公园里和他们的狗玩耍。",
};
