/** RFC 6570 §2: the text of a template into literals and expressions. */
import { clip } from '../../../jsonrpc/limits.ts'

export interface TemplateVariable {
  readonly name: string
  /** `*`: a list is written item by item. */
  readonly explode: boolean
  /** `:n`: only the first n characters are written. */
  readonly prefix: number | undefined
}

export type Operator = '' | '+' | '#' | '.' | '/' | ';' | '?' | '&'

export interface Expression {
  readonly operator: Operator
  readonly variables: readonly TemplateVariable[]
  /** As it stands in the template, with its braces. */
  readonly source: string
}

/** A literal text or an expression. */
export type Part = string | Expression

export function readParts(text: string): Part[] {
  const parts: Part[] = []
  for (let at = 0; at < text.length; ) {
    const open = text.indexOf('{', at)
    const literal = text.slice(at, open === -1 ? text.length : open)
    if (literal.includes('}')) throw templateError(text, 'has a } without a {. Write %7D for the character itself')
    if (literal !== '') parts.push(literal)
    if (open === -1) break
    const close = text.indexOf('}', open)
    if (close === -1) throw templateError(text, 'has a { without a }. Write %7B for the character itself')
    parts.push(readExpression(text, text.slice(open, close + 1)))
    at = close + 1
  }
  return parts
}

function readExpression(text: string, source: string): Expression {
  const [, operator, list = ''] = /^\{([+#./;?&]?)(.*)\}$/s.exec(source) ?? []
  if (/^[=,!@|]/.test(list)) throw templateError(text, `${clip(source)} begins with an operator that RFC 6570 keeps for later`)
  const variables = list.split(',').map(spec => readVariable(text, source, spec))
  return { operator: operator as Operator, variables, source }
}

function readVariable(text: string, source: string, spec: string): TemplateVariable {
  const pattern = /^((?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*)(?:(\*)|:([1-9]\d{0,3}))?$/
  const [, name, star, prefix] = pattern.exec(spec) ?? []
  if (name !== undefined) return { name, explode: star !== undefined, prefix: prefix === undefined ? undefined : Number(prefix) }
  throw templateError(
    text,
    `${clip(source)} has no variable where ${spec === '' ? 'nothing' : clip(spec)} stands. Write letters, digits, _ and ., then * or :1 to :9999 if need be`,
  )
}

/** Says which template is wrong and what would be right. */
export function templateError(text: string, message: string): Error {
  return new Error(`URI template ${clip(text)}: ${message}`)
}
