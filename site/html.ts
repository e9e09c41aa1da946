/** Text as HTML. */

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export const escapeHtml = (text: string): string => text.replace(/[&<>"]/g, char => ENTITIES[char] ?? char)

/** Markup as it is, where `html` would escape a string. */
export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
}

export const raw = (text: string): Markup => new Markup(text)

type Value = string | number | Markup | false | undefined | readonly Value[]

/** A template whose values are escaped unless they are markup; `false` and `undefined` are nothing, lists are joined. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Markup {
  return raw(parts.map((part, at) => part + shown(values[at])).join(''))
}

function shown(value: Value): string {
  if (value === undefined || value === false) return ''
  if (value instanceof Markup) return value.text
  return Array.isArray(value) ? value.map(shown).join('') : escapeHtml(String(value))
}
