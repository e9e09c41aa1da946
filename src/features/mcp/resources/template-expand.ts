/** RFC 6570 §3: values into a URI. */
import type { Expression, Operator, Part, TemplateVariable } from './template-parts.ts'

export type TemplateValue = string | number | boolean | readonly string[] | Readonly<Record<string, string>>
export type TemplateValues = Readonly<Record<string, TemplateValue | undefined>>

/** How an operator writes (RFC 6570 appendix A). */
export interface Style {
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

export const styles: Readonly<Record<Operator, Style>> = {
  '': plain,
  '+': { ...plain, reserved: true },
  '#': { ...plain, first: '#', reserved: true },
  '.': { ...plain, first: '.', separator: '.' },
  '/': { ...plain, first: '/', separator: '/' },
  ';': { ...plain, first: ';', separator: ';', named: true },
  '?': { ...plain, first: '?', separator: '&', named: true, ifEmpty: '=' },
  '&': { ...plain, first: '&', separator: '&', named: true, ifEmpty: '=' },
}

export function expandParts(parts: readonly Part[], values: TemplateValues): string {
  return parts.map(part => (typeof part === 'string' ? encodeLiteral(part) : expandExpression(part, values))).join('')
}

/** Literals are copied, except for characters that no URI may have. */
export function encodeLiteral(text: string): string {
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
  return new TypeError(`${name} is a list, of which ${name}:${prefix} cannot take the first characters. Give a text`)
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
