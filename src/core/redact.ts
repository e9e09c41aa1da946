/**
 * Taking secrets out of text that will be written down or told to others. Two ways: values that are known to be secret (those
 * of the environment, of a caller's headers) are taken out wherever they stand; the rest is known by its looks or its name.
 * Bounded: no pattern begins with a repetition, and long text is cut before it is read.
 */

/** Stands where a secret stood. */
export const redacted = '[redacted]'

/** More than is ever written of one text; what lies beyond is dropped unread. */
const readLength = 8_192

/** Two are enough for what anybody writes. */
const mostRounds = 8

/** Shorter values are words and numbers that stand in honest text too. */
const knownLength = 6

/**
 * @example
 * redact('GET /cb?code=SplxlOBeZQ&state=af0ifjsldkj') // 'GET /cb?code=[redacted]&state=[redacted]'
 */
export function redact(given: string, known: Iterable<string> = []): string {
  let text = given.length > readLength ? given.slice(0, readLength) : given
  // The longest first, so that none leaves the rest of another behind.
  const values = [...known].filter(value => value.length >= knownLength).sort((a, b) => b.length - a.length)
  for (const value of values) {
    text = text.replaceAll(value, redacted)
    const quoted = encodeURIComponent(value.toWellFormed())
    if (quoted !== value) text = text.replaceAll(quoted, redacted)
  }
  // What one rule took away may have kept another from seeing its own; the rounds end when nothing changes any more.
  for (let round = 0, before = ''; round < mostRounds && text !== before; round++) {
    before = text
    for (const [pattern, put] of rules) text = text.replace(pattern, put)
  }
  return text
}

/** Whether a field, header, variable or parameter of this name holds a secret. */
export function isSecretName(name: string): boolean {
  const plain = name.length > 256 ? name.slice(-256) : name
  return secretName.test(plain) && !counts.test(plain)
}

/** The values among these variables or headers that are secret by their name, or, with `all`, whatever their name. */
export function secretValues(named: Readonly<Record<string, string | undefined>>, all = false): string[] {
  const values: string[] = []
  for (const [name, value] of Object.entries(named)) {
    // A path is no secret, but stands in every stack.
    if (value === undefined || value.startsWith('/')) continue
    if (!(all || isSecretName(name) || looseName.test(name))) continue
    const [, credentials] = /^(?:bearer|basic|dpop)\s+(.+)$/i.exec(value) ?? []
    values.push(credentials ?? value)
  }
  return values
}

const secretWords =
  'token|secret|pass(?:word|wd|phrase)|api[-_]?key|(?:private|access|secret|signing|encryption)[-_]?key|assertion|code[-_]?verifier|authorization|cookie2?|session[-_]?id|credentials?|signature|dpop|jwt'
const secretName = new RegExp(`(?:${secretWords})s?$`, 'i')

/** Names that end like a secret's and count something. */
const countWords = '(?:progress|max|input|output|total|prompt|completion)[-_]?tokens?'
const counts = new RegExp(`${countWords}$`, 'i')

/** In the environment more is meant by less. */
const looseName = /key|token|secret|pass|pwd|cred|auth|dsn|session/i

/** Words that follow a scheme's name in prose or in a challenge. */
const prose =
  /^(?:tokens?|auth|authentication|authorization|credentials?|schemes?|challenges?|headers?|is|are|was|or|and|in|for|not|the|(?:realm|error|error_description|scope|resource_metadata|algs|charset)=.*)[.,:;!?)]*$/i

/** What follows `code` or `state` and is none: a number, an error's code, one plain word. */
const harmless = /^(?:-?\d{1,6}|[A-Z][A-Z0-9_]{1,40}|[a-z_-]{1,16})$/

type Replacer = (whole: string, ...groups: string[]) => string

const quote = `\\\\{0,3}["']?`
const value = `(\\\\{0,3}"(?:[^"\\\\]|\\\\.){0,8192}"?|'[^']{0,8192}'?|[^\\s"'&,;<>(){}\\\\]{1,8192})`

const rules: readonly (readonly [RegExp, Replacer])[] = [
  [/-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[^-]{0,16384}(?:-----END [A-Z ]{0,32}-----)?/g, () => redacted],
  // A header takes its whole line, for a cookie has many parts.
  [
    new RegExp(
      `\\b(authorization|proxy-authorization|(?:set-)?cookie|mcp-session-id|dpop|x-api-key)(${quote}\\s{0,8}[:=]\\s{0,8}${quote})([^"'\\r\\n\\\\]{1,8192})`,
      'gi',
    ),
    (_, name = '', between = '') => `${name}${between}${redacted}`,
  ],
  [
    /\b(bearer|basic|dpop)(\s{1,8})([^\s"'<>\\]{1,8192})/gi,
    (whole, scheme = '', gap = '', word = '') => (prose.test(word) ? whole : `${scheme}${gap}${redacted}`),
  ],
  [
    new RegExp(`((?:${secretWords})s?)(?<!${countWords})(${quote}\\s{0,8})([:=])(\\s{0,8})${value}`, 'gi'),
    (whole, name = '', before = '', sign = '', gap = '', word = '') => {
      const plainWord = sign === ':' && gap !== '' && /^[A-Za-z]{1,15}[.!]?$/.test(word)
      if (plainWord || word.startsWith(redacted)) return whole
      return `${name}${before}${sign}${gap}${hidden(word)}`
    },
  ],
  [
    /(^|[?&#;\s"'])(code|state|device_code|user_code|nonce)=([^\s"'&,;<>(){}\\]{1,8192})/gi,
    (whole, before = '', name = '', word = '') =>
      harmless.test(word) || word.startsWith(redacted) ? whole : `${before}${name}=${redacted}`,
  ],
  [/\beyJ[\w-]{8,8192}(?:\.[\w-]{0,8192}){0,4}/g, () => redacted],
  [
    /\b(?:[spr]k[-_][\w-]{16,512}|gh[pousr]_\w{16,512}|github_pat_\w{16,512}|glpat-[\w-]{16,512}|npm_\w{30,512}|xox[a-z]-[\w-]{10,512}|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,512})/g,
    () => redacted,
  ],
  [/(\b[a-z][a-z0-9+.-]{0,20}:\/\/)([^\s/@"'<>\\]{1,512})@/gi, (_, scheme = '') => `${scheme}${redacted}@`],
]

/** Keeps the quotes, so that what was JSON stays readable. */
function hidden(word: string): string {
  const [open = ''] = /^\\{0,3}["']?/.exec(word) ?? []
  const [close = ''] = open === '' ? [] : (/\\{0,3}["']$/.exec(word.slice(open.length)) ?? [])
  return `${open}${redacted}${close}`
}
