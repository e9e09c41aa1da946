/**
 * A URI back into values, in one pass backwards that notes where each expression could still come to a good end, and one forwards that takes the
 * values out. There is no generated regular expression and no going back, so a hostile URI costs no more than its length.
 */
import { clip } from '../../../jsonrpc/limits.ts'

/** The values of the variables in a URI that matches a template. */
export type TemplateMatch = Record<string, string | string[]>

/** Counts the characters looked at, times the expressions there are. */
export interface MatchSteps {
  count: number
}

/** An expression with the literal behind it, ready to be matched. */
interface Span {
  readonly expression: Expression
  readonly style: Style
  /** For ASCII: 1 where the character may be part of the expression. */
  readonly allowed: Uint8Array
  readonly after: string
}

type Bits = Uint8Array | Uint32Array

/** One bit for each. */
const maxExpressions = 31

/** Makes the function that matches URIs against a template, with a bounded number of steps. */
export function createMatcher(
  text: string,
  parts: readonly Part[],
): (uri: string, steps?: MatchSteps) => TemplateMatch | undefined {
  const { before, spans } = arrange(parts)
  if (spans.length > maxExpressions) throw templateError(text, `has more than ${maxExpressions} expressions (the limit)`)
  refuseRepeated(text, parts)
  refuseAmbiguous(text, spans)
  const last = spans.at(-1)?.after ?? ''
  return (uri, steps) => {
    if (!uri.startsWith(before)) return undefined
    if (spans.length === 0) return uri.length === before.length ? emptyMatch() : undefined
    if (!uri.endsWith(last)) return undefined
    const inside = sweepBack(spans, uri, before.length, steps)
    return inside === undefined ? undefined : takeValues(spans, uri, before.length, inside)
  }
}

function arrange(parts: readonly Part[]): { before: string; spans: Span[] } {
  const expressions = parts.flatMap((part, index) =>
    typeof part === 'string' ? [] : [{ expression: part, next: parts[index + 1] }],
  )
  const spans = expressions.map(({ expression, next }): Span => {
    const after = typeof next === 'string' ? encodeLiteral(next) : ''
    return { expression, style: styles[expression.operator], allowed: allowedIn(expression, next), after }
  })
  const [first] = parts
  return { before: typeof first === 'string' ? encodeLiteral(first) : '', spans }
}

const unreserved = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~'

/**
 * What an expression may have written, and a little more: peers often leave characters unencoded. A path segment ends at `/ ? #` in any case,
 * and a value ends at the reserved character that stands next in the template.
 */
function allowedIn({ operator, variables }: Expression, next: Part | undefined): Uint8Array {
  const allowed = new Uint8Array(128).fill(1)
  const { separator, reserved } = styles[operator]
  const forbid = (chars: string) => {
    for (const char of chars) allowed[char.charCodeAt(0)] = 0
  }
  const followed = typeof next === 'string' ? next.charAt(0) : next === undefined ? '' : styles[next.operator].first
  if (reserved) {
    // A path that is followed by a query or fragment of the template holds none of its own.
    if (typeof next !== 'string' && (followed === '?' || followed === '#')) forbid(followed)
    return allowed
  }
  forbid('/?#')
  if (followed !== '' && !unreserved.includes(followed)) forbid(followed)
  if (variables.length > 1 || variables[0]?.explode === true) allowed[separator.charCodeAt(0)] = 1
  if (operator === '?' || operator === '&') allowed['/'.charCodeAt(0)] = allowed['?'.charCodeAt(0)] = 1
  return allowed
}

function refuseRepeated(text: string, parts: readonly Part[]): void {
  const seen = new Set<string>()
  for (const part of parts) {
    if (typeof part === 'string') continue
    for (const [index, { name, explode }] of part.variables.entries()) {
      if (seen.has(name)) throw templateError(text, `uses ${name} twice. Give each variable a different name`)
      seen.add(name)
      if (explode && !styles[part.operator].named && index < part.variables.length - 1) {
        throw templateError(text, `${part.source}: a list (${name}*) matches everything that follows. Put it last`)
      }
    }
  }
}

/** Two expressions side by side must be told apart by the character with which the second begins. */
function refuseAmbiguous(text: string, spans: readonly Span[]): void {
  for (const [index, span] of spans.entries()) {
    if (span.style.named && span.after.startsWith('=')) {
      const { source } = span.expression
      throw templateError(text, `the end of ${source} is ambiguous because it contains a =. Put another literal after it`)
    }
    for (let next = index; spans[next]?.after === '' && next + 1 < spans.length; next++) {
      const { expression, style } = spans[next + 1] ?? span
      if (style.first !== '' && span.allowed[style.first.charCodeAt(0)] === 0) continue
      throw templateError(
        text,
        `the boundary between ${span.expression.source} and ${expression.source} is ambiguous. Put a literal such as / between them, or combine them in one expression`,
      )
    }
  }
}

/**
 * For each position a bit per span: set if the span, being under way there, can end there or later so that all the rest matches.
 * Undefined if nothing does.
 */
function sweepBack(spans: readonly Span[], uri: string, start: number, steps: MatchSteps | undefined): Bits | undefined {
  const end = uri.length
  const Bits = spans.length <= 8 ? Uint8Array : Uint32Array
  const inside = new Bits(end - start + 1)
  const begins = new Bits(end - start + 1)
  for (let at = end; at >= start; at--) {
    const code = at < end ? uri.charCodeAt(at) : -1
    const later = at < end ? inside[at - start + 1]! : 0
    let within = 0
    let begin = 0
    for (let index = spans.length - 1; index >= 0; index--) {
      const { style, after, allowed } = spans[index]!
      const bit = 1 << index
      const behind = at + after.length
      const last = index === spans.length - 1
      const followed = last
        ? behind === end
        : behind <= end && ((after === '' ? begin : begins[behind - start]!) & (bit << 1)) !== 0
      const ends = followed && uri.startsWith(after, at)
      const goesOn = code !== -1 && (later & bit) !== 0
      const fits = goesOn && (code >= 128 || allowed[code] === 1)
      if (ends || fits) within |= bit
      if (style.first === '' ? fits : ends || (goesOn && code === style.first.charCodeAt(0))) begin |= bit
    }
    if (steps !== undefined) steps.count += spans.length
    inside[at - start] = within
    begins[at - start] = begin
  }
  return (begins[0]! & 1) === 0 ? undefined : inside
}

/** Walks along what the sweep found possible, giving each span all it can take. */
function takeValues(spans: readonly Span[], uri: string, start: number, inside: Bits): TemplateMatch | undefined {
  const values = emptyMatch()
  let at = start
  for (const [index, { expression, style, allowed, after }] of spans.entries()) {
    const goesOn = (position: number) => position < uri.length && (inside[position - start + 1]! & (1 << index)) !== 0
    const present = style.first === '' || (uri.startsWith(style.first, at) && goesOn(at))
    if (present) {
      const from = at + style.first.length
      at = from
      while (goesOn(at) && (uri.charCodeAt(at) >= 128 || allowed[uri.charCodeAt(at)] === 1)) at++
      if (!readValues(expression, style, uri.slice(from, at), values)) return undefined
    }
    at += after.length
  }
  return values
}

/** A variable may be called `__proto__`; here that is a name like any other. */
function emptyMatch(): TemplateMatch {
  return Object.create(null)
}

/** What one expression wrote, taken apart again. False if it cannot have written that. */
function readValues({ variables }: Expression, style: Style, text: string, values: TemplateMatch): boolean {
  if (style.named) return readNamed(variables, style, text, values)
  const [first] = variables
  const whole = variables.length === 1 && first?.explode === false
  const pieces = whole ? [text] : text.split(style.separator)
  for (const variable of variables) {
    if (variable.explode) return pieces.length === 0 || keep(variable, pieces.splice(0), values)
    const piece = pieces.shift()
    if (piece === undefined) break
    if (!keep(variable, [piece], values)) return false
  }
  return pieces.length === 0
}

/** Names make the order free; a name that the template does not have makes it another URI. */
function readNamed(variables: readonly TemplateVariable[], style: Style, text: string, values: TemplateMatch): boolean {
  const found = new Map<string, string[]>()
  for (const pair of text.split(style.separator)) {
    const equals = pair.indexOf('=')
    const name = equals === -1 ? pair : pair.slice(0, equals)
    const texts = found.get(name) ?? []
    texts.push(equals === -1 ? '' : pair.slice(equals + 1))
    found.set(name, texts)
  }
  for (const variable of variables) {
    const texts = found.get(variable.name)
    if (texts === undefined) continue
    if (!keep(variable, texts, values)) return false
    found.delete(variable.name)
  }
  return found.size === 0
}

function keep({ name, explode, prefix }: TemplateVariable, texts: readonly string[], values: TemplateMatch): boolean {
  try {
    const decoded = texts.map(text => decodeURIComponent(text))
    const [only = ''] = decoded
    if (explode) values[name] = decoded
    else if (decoded.length > 1 || (prefix !== undefined && [...only].length > prefix)) return false
    else values[name] = only
    return true
  } catch {
    // A percent sign that encodes nothing: this URI is not one of ours.
    return false
  }
}

// RFC 6570 §3: values into a URI.

/** A value that a variable can be expanded with. */
export type TemplateValue = string | number | boolean | readonly string[] | Readonly<Record<string, string>>
/** The values of variables by name; those that are undefined are left out. */
export type TemplateValues = Readonly<Record<string, TemplateValue | undefined>>

/** How an operator writes (RFC 6570 appendix A). */
interface Style {
  readonly first: string
  readonly separator: string
  /** `name=value` instead of the value alone. */
  readonly named: boolean
  /** What stands behind the name of an empty value. */
  readonly ifEmpty: '' | '='
  /** Reserved characters and percent-triplets are written as they are. */
  readonly reserved: boolean
}

const plain: Style = { first: '', separator: ',', named: false, ifEmpty: '', reserved: false }

const styles: Readonly<Record<Operator, Style>> = {
  '': plain,
  '+': { ...plain, reserved: true },
  '#': { ...plain, first: '#', reserved: true },
  '.': { ...plain, first: '.', separator: '.' },
  '/': { ...plain, first: '/', separator: '/' },
  ';': { ...plain, first: ';', separator: ';', named: true },
  '?': { ...plain, first: '?', separator: '&', named: true, ifEmpty: '=' },
  '&': { ...plain, first: '&', separator: '&', named: true, ifEmpty: '=' },
}

/** The URI that a template gives for these values (RFC 6570). */
export function expandParts(parts: readonly Part[], values: TemplateValues): string {
  return parts.map(part => (typeof part === 'string' ? encodeLiteral(part) : expandExpression(part, values))).join('')
}

/** Literals are copied, except for characters that no URI may have. */
function encodeLiteral(text: string): string {
  return encode(text, true)
}

function expandExpression({ operator, variables }: Expression, values: TemplateValues): string {
  const style = styles[operator]
  const written: string[] = []
  for (const variable of variables) {
    const value = Object.hasOwn(values, variable.name) ? values[variable.name] : undefined
    if (value === undefined || value === null) continue
    if (typeof value !== 'object') written.push(named(style, variable.name, single(style, variable, String(value))))
    else {
      if (variable.prefix !== undefined) throw cannotCut(variable)
      const entries = Array.isArray(value) ? value.map((item): [undefined, string] => [undefined, item]) : Object.entries(value)
      if (entries.length > 0)
        written.push(variable.explode ? exploded(style, variable, entries) : joined(style, variable, entries))
    }
  }
  return written.length === 0 ? '' : style.first + written.join(style.separator)
}

function cannotCut({ name, prefix }: TemplateVariable): Error {
  return new TypeError(`${name} is a list, so ${name}:${prefix} cannot take its first characters. Give a string`)
}

type Entries = readonly (readonly [name: string | undefined, value: string])[]

/** A prefix counts characters, so it is cut before anything is encoded. */
function single(style: Style, { prefix }: TemplateVariable, value: string): string {
  return encode(prefix === undefined ? value : [...value].slice(0, prefix).join(''), style.reserved)
}

function exploded(style: Style, { name }: TemplateVariable, entries: Entries): string {
  const one = ([key, value]: Entries[number]) => {
    const text = encode(value, style.reserved)
    if (key !== undefined)
      return style.named && text === '' ? encode(key, style.reserved) + style.ifEmpty : `${encode(key, style.reserved)}=${text}`
    return named(style, name, text)
  }
  return entries.map(one).join(style.separator)
}

function joined(style: Style, { name }: TemplateVariable, entries: Entries): string {
  const texts = entries.flatMap(([key, value]) => (key === undefined ? [value] : [key, value]))
  return named(style, name, texts.map(text => encode(text, style.reserved)).join(','))
}

function named(style: Style, name: string, text: string): string {
  if (!style.named) return text
  return text === '' ? name + style.ifEmpty : `${name}=${text}`
}

function encode(text: string, reserved: boolean): string {
  // Half a surrogate pair has no encoding; it becomes the replacement character instead of an exception.
  const foreign = reserved ? /%(?![0-9A-Fa-f]{2})|[^%A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]+/g : /[^A-Za-z0-9\-._~]+/g
  return text.toWellFormed().replace(foreign, run => encodeURIComponent(run).replace(/[!'()*]/g, percent))
}

function percent(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase()}`
}

// RFC 6570 §2: the text of a template into literals and expressions.

interface TemplateVariable {
  readonly name: string
  /** `*`: a list is written item by item. */
  readonly explode: boolean
  /** `:n`: only the first n characters are written. */
  readonly prefix: number | undefined
}

type Operator = '' | '+' | '#' | '.' | '/' | ';' | '?' | '&'

interface Expression {
  readonly operator: Operator
  readonly variables: readonly TemplateVariable[]
  /** As it stands in the template, with its braces. */
  readonly source: string
}

/** A literal text or an expression. */
export type Part = string | Expression

/** The literals and expressions of a template. Throws where it is malformed. */
export function readParts(text: string): Part[] {
  const parts: Part[] = []
  for (let at = 0; at < text.length; ) {
    const open = text.indexOf('{', at)
    const literal = text.slice(at, open === -1 ? text.length : open)
    if (literal.includes('}')) throw templateError(text, 'has a } without a {. Write %7D for a literal }')
    if (literal !== '') parts.push(literal)
    if (open === -1) break
    const close = text.indexOf('}', open)
    if (close === -1) throw templateError(text, 'has a { without a }. Write %7B for a literal {')
    parts.push(readExpression(text, text.slice(open, close + 1)))
    at = close + 1
  }
  return parts
}

function readExpression(text: string, source: string): Expression {
  const [, operator, list = ''] = /^\{([+#./;?&]?)(.*)\}$/s.exec(source) ?? []
  if (/^[=,!@|]/.test(list)) throw templateError(text, `${clip(source)} begins with an operator that RFC 6570 reserves`)
  const variables = list.split(',').map(spec => readVariable(text, source, spec))
  return { operator: operator as Operator, variables, source }
}

function readVariable(text: string, source: string, spec: string): TemplateVariable {
  const pattern = /^((?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*)(?:(\*)|:([1-9]\d{0,3}))?$/
  const [, name, star, prefix] = pattern.exec(spec) ?? []
  if (name !== undefined) return { name, explode: star !== undefined, prefix: prefix === undefined ? undefined : Number(prefix) }
  throw templateError(
    text,
    `${clip(source)} has ${spec === '' ? 'nothing' : clip(spec)} in place of a variable. Write letters, digits, _ and ., optionally followed by * or :1 to :9999`,
  )
}

/** Says which template is wrong and what would be right. */
function templateError(text: string, message: string): Error {
  return new Error(`URI template ${clip(text)}: ${message}`)
}
