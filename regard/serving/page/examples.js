// Sentences to begin with, by the language that is translated from: one that a picture could have below it,
// and one of the kind that the phrasebook of `regard demo` teaches.
const EXAMPLES = {
  cs: ["Dva psi běží sněhem.", "před 5 hodinami"],
  da: ["To hunde løber gennem sneen.", "for 5 timer siden"],
  de: ["Zwei Hunde laufen durch den Schnee.", "vor 5 Stunden"],
  el: ["Δύο σκυλιά τρέχουν στο χιόνι.", "πριν από 5 ώρες"],
  en: ["Two dogs run through the snow.", "5 hours ago"],
  es: ["Dos perros corren por la nieve.", "hace 5 horas"],
  fi: ["Kaksi koiraa juoksee lumessa.", "5 tuntia sitten"],
  fr: ["Deux chiens courent dans la neige.", "il y a 5 heures"],
  hu: ["Két kutya fut a hóban.", "5 órával ezelőtt"],
  it: ["Due cani corrono nella neve.", "5 ore fa"],
  ja: ["二匹の犬が雪の中を走っている。", "5 時間前"],
  ko: ["개 두 마리가 눈 속을 달린다.", "5시간 전"],
  nl: ["Twee honden rennen door de sneeuw.", "5 uur geleden"],
  pl: ["Dwa psy biegną przez śnieg.", "5 godzin temu"],
  pt: ["Dois cães correm na neve.", "há 5 horas"],
  ro: ["Doi câini aleargă prin zăpadă.", "acum 5 ore"],
  ru: ["Две собаки бегут по снегу.", "5 часов назад"],
  sv: ["Två hundar springer genom snön.", "för 5 timmar sedan"],
  tr: ["İki köpek karda koşuyor.", "5 saat önce"],
  uk: ["Два собаки біжать по снігу.", "5 годин тому"],
  zh: ["两只狗在雪地里奔跑。", "5小时前"],
};

export function examplesOf(code) {
  return EXAMPLES[code.toLowerCase().split("-")[0]] ?? [];
}
