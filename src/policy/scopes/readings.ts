/** What a spelling may be taken for: escapes resolved, look-alikes as what they look like, dots walked. */

/** Deeper escapes are read by nobody. */
const rounds = 5

/** Letters of other alphabets that look like these, in lower case. */
const likeness: ReadonlyMap<string, string> = new Map(
  [
    ['a', 'аαɑ'],
    ['b', 'ьв'],
    ['c', 'сϲ'],
    ['d', 'ԁɗ'],
    ['e', 'еεҽ'],
    ['g', 'ɡց'],
    ['h', 'һհн'],
    ['i', 'іιıɩ'],
    ['j', 'јϳ'],
    ['k', 'кκ'],
    ['l', 'ӏⅼǀ'],
    ['m', 'мṃ'],
    ['n', 'ոηп'],
    ['o', 'оοօσ'],
    ['p', 'рρ'],
    ['q', 'ԛգ'],
    ['r', 'гɾ'],
    ['s', 'ѕꜱ'],
    ['t', 'тτ'],
    ['u', 'υսʋ'],
    ['v', 'νѵ'],
    ['w', 'ԝω'],
    ['x', 'хχ'],
    ['y', 'уγү'],
    ['z', 'ᴢ'],
    ['/', '\u2044\u2215\u29f8\u2571\u3033\u27cb\u1735'],
    ['\\', '\u29f5\u2216\u29f9\u2572\u27cd\ufe68'],
    ['.', '\u2024\ua4f8\ua60e\u0701\u0702'],
  ].flatMap(([letter = '', others = '']) => [...others].map(other => [other, letter] as const)),
)

/** Resolves escapes in percent (also overlong ones) and of HTML, again and again. */
export function unescaped(text: string): string {
  let now = text
  for (let round = 0; round < rounds; round++) {
    const next = now
      .replace(/%c0%(?:ae|2e)|%e0%80%ae/gi, '.')
      .replace(/%c0%(?:af|2f)|%e0%80%af/gi, '/')
      .replace(/(?:%[0-9a-f]{2})+/gi, decoded)
      .replace(/%u([0-9a-f]{4})|\\u([0-9a-f]{4})|&#x([0-9a-f]{1,6});?/gi, (_, a, b, c) => character(`0x${a ?? b ?? c}`))
      .replace(/&#(\d{1,7});?/g, (_, digits) => character(digits))
      .replace(/&(period|sol|bsol|percnt);/gi, (_, name: string) => named.get(name.toLowerCase()) ?? '')
    if (next === now) break
    now = next
  }
  return now
}

const named: ReadonlyMap<string, string> = new Map([
  ['period', '.'],
  ['sol', '/'],
  ['bsol', '\\'],
  ['percnt', '%'],
])

function decoded(escapes: string): string {
  try {
    return decodeURIComponent(escapes)
  } catch {
    return escapes.replace(/%([0-9a-f]{2})/gi, (_, digits) => character(`0x${digits}`))
  }
}

function character(code: string): string {
  const point = Number(code)
  return Number.isInteger(point) && point <= 0x10ffff ? String.fromCodePoint(point) : ''
}

/** Lower case, one form for one look, one kind of slash; what nobody sees is gone. */
export function folded(text: string): string {
  const simple = text.normalize('NFKC').toLowerCase().normalize('NFKC')
  const seen = simple.replace(/[\p{Cc}\p{Cf}]/gu, '')
  let out = ''
  for (const letter of seen) out += likeness.get(letter) ?? letter
  return out.replaceAll('\\', '/').replace(/^file:\/\/(?:localhost)?(?=\/)/, '')
}

/** As a file system walks it: no empty segments, no dots, no streams, no blanks or dots at the end of a name. */
export function clean(text: string): string {
  const [, root = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/[^/]*|[a-z]:)?(.*)$/su.exec(text) ?? []
  const walked: string[] = []
  for (const segment of rest.split('/')) {
    if (segment === '..' || segment.startsWith('..;')) walked.pop()
    else if (segment !== '.' && segment !== '') walked.push(bareName(segment))
  }
  return `${root}${rest.startsWith('/') ? '/' : ''}${walked.join('/')}`
}

/** `x:stream` is a part of `x`, and `x. ` is `x`. */
function bareName(segment: string): string {
  const whole = segment.includes(':') ? segment.slice(0, segment.indexOf(':')) : segment
  return whole.trim().replace(/[. ]+$/, '') || segment
}
