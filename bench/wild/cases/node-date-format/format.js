// Dates as people of a country write them.
const cached = new Map();

function formatter(locale, timeZone, options) {
  if (process.env.FORMATTER_CACHE !== "1") return new Intl.DateTimeFormat(locale, { timeZone, ...options });
  const key = `${locale}/${timeZone}/${JSON.stringify(options)}`;
  if (!cached.has(key)) cached.set(key, new Intl.DateTimeFormat(locale, { timeZone, ...options }));
  return cached.get(key);
}

exports.day = (time, locale, timeZone) =>
  formatter(locale, timeZone, { weekday: "long", day: "numeric", month: "long" }).format(time);

exports.clock = (time, locale, timeZone) =>
  formatter(locale, timeZone, { hour: "2-digit", minute: "2-digit" }).format(time);
