"""Sentences of five words and more in thirty languages, written for the tests of who tells them apart."""

SPOKEN = {
    "ar": ["ذهبت أمس إلى السوق مع أختي", "لا أعرف أين وضعت مفاتيح البيت", "سوف نسافر غدا إلى مدينة أخرى"],
    "bg": [
        "Вчера ходих на пазар с майка си",
        "Не знам къде са ключовете ми",
        "Децата играят в градината зад къщата",
    ],
    "bn": ["আমি গতকাল আমার বোনের সাথে বাজারে গিয়েছিলাম", "আমি জানি না চাবিটা কোথায় রেখেছি", "ছেলেরা মাঠে ফুটবল খেলছে এখন"],
    "cs": [
        "Včera jsem šel s matkou na trh",
        "Nevím, kam jsem dal své klíče",
        "Děti si hrají na zahradě za domem",
    ],
    "da": [
        "I går gik jeg på markedet med min mor",
        "Jeg ved ikke, hvor jeg har lagt mine nøgler",
        "Børnene leger ude i haven bag huset",
    ],
    "de": [
        "Gestern ging ich mit meiner Mutter zum Markt",
        "Ich weiß nicht, wo meine Schlüssel sind",
        "Die Kinder spielen im Garten hinter dem Haus",
    ],
    "el": [
        "Χθες πήγα στην αγορά με τη μητέρα μου",
        "Δεν ξέρω πού έβαλα τα κλειδιά μου",
        "Τα παιδιά παίζουν στον κήπο",
    ],
    "en": [
        "Yesterday I went to the market with my mother",
        "I do not know where my keys are",
        "The children play in the garden behind the house",
    ],
    "es": [
        "Ayer fui al mercado con mi madre",
        "No sé dónde he puesto las llaves",
        "Los niños juegan en el jardín detrás de la casa",
    ],
    "et": [
        "Eile käisin koos emaga turul",
        "Ma ei tea, kuhu ma oma võtmed panin",
        "Lapsed mängivad maja taga aias",
    ],
    "fa": [
        "دیروز با مادرم به بازار رفتم",
        "نمی‌دانم کلیدهایم را کجا گذاشته‌ام",
        "بچه‌ها در باغ پشت خانه بازی می‌کنند",
    ],
    "fi": [
        "Eilen kävin torilla äitini kanssa",
        "En tiedä, mihin panin avaimeni eilen",
        "Lapset leikkivät puutarhassa talon takana",
    ],
    "fr": [
        "Hier je suis allé au marché avec ma mère",
        "Je ne sais pas où sont mes clés",
        "Les enfants jouent dans le jardin derrière la maison",
    ],
    "he": [
        "אתמול הלכתי לשוק עם אמא שלי",
        "אני לא יודע איפה שמתי את המפתחות",
        "הילדים משחקים בגינה מאחורי הבית",
    ],
    "hi": [
        "कल मैं अपनी माँ के साथ बाज़ार गया था",
        "मुझे नहीं पता कि मेरी चाबियाँ कहाँ हैं",
        "बच्चे घर के पीछे बगीचे में खेल रहे हैं",
    ],
    "hu": [
        "Tegnap a piacra mentem az anyámmal",
        "Nem tudom, hova tettem a kulcsaimat",
        "A gyerekek a kertben játszanak a ház mögött",
    ],
    "id": [
        "Kemarin saya pergi ke pasar bersama ibu saya",
        "Saya tidak tahu di mana kunci saya",
        "Anak-anak bermain di kebun di belakang rumah",
    ],
    "it": [
        "Ieri sono andato al mercato con mia madre",
        "Non so dove ho messo le mie chiavi",
        "I bambini giocano nel giardino dietro la casa",
    ],
    "ja": [
        "昨日は母と一緒に市場へ行きました。",
        "鍵をどこに置いたのか分かりません。",
        "子供たちは家の裏の庭で遊んでいます。",
    ],
    "ko": [
        "어제 나는 어머니와 함께 시장에 갔다",
        "나는 열쇠를 어디에 두었는지 모르겠다",
        "아이들이 집 뒤 정원에서 놀고 있다",
    ],
    "lt": ["Vakar su mama nuėjau į turgų", "Nežinau, kur padėjau savo raktus", "Vaikai žaidžia sode už namo"],
    "lv": [
        "Vakar es ar māti gāju uz tirgu",
        "Es nezinu, kur noliku savas atslēgas",
        "Bērni spēlējas dārzā aiz mājas",
    ],
    "nl": [
        "Gisteren ging ik met mijn moeder naar de markt",
        "Ik weet niet waar mijn sleutels zijn",
        "De kinderen spelen in de tuin achter het huis",
    ],
    "pl": [
        "Wczoraj poszedłem z matką na targ",
        "Nie wiem, gdzie położyłem moje klucze",
        "Dzieci bawią się w ogrodzie za domem",
    ],
    "pt": [
        "Ontem fui ao mercado com a minha mãe",
        "Não sei onde deixei as minhas chaves",
        "As crianças brincam no jardim atrás da casa",
    ],
    "ro": [
        "Ieri am mers la piață cu mama mea",
        "Nu știu unde mi-am pus cheile",
        "Copiii se joacă în grădina din spatele casei",
    ],
    "ru": ["Вчера я ходил на рынок с мамой", "Я не знаю, куда положил ключи", "Дети играют в саду за домом"],
    "sv": [
        "I går gick jag till torget med min mor",
        "Jag vet inte var jag har lagt mina nycklar",
        "Barnen leker i trädgården bakom huset",
    ],
    "tr": [
        "Dün annemle birlikte pazara gittim ve döndüm",
        "Anahtarlarımı nereye koyduğumu hiç bilmiyorum",
        "Çocuklar evin arkasındaki bahçede oynuyor",
    ],
    "uk": [
        "Вчора я ходив на ринок з мамою",
        "Я не знаю, куди поклав свої ключі",
        "Діти граються в саду за будинком",
    ],
    "vi": [
        "Hôm qua tôi đi chợ với mẹ tôi",
        "Tôi không biết chìa khóa của tôi ở đâu",
        "Bọn trẻ đang chơi trong vườn sau nhà",
    ],
    "zh": ["昨天我和妈妈一起去了市场。", "我不知道我把钥匙放在哪里了。", "孩子们正在房子后面的花园里玩。"],
}
