/** URI templates: any text is a template or refused with a reason, any URI matches or not, in linear time; what we expand is a URI. */
import { expandTemplate, parseTemplate, type TemplateValue } from '../../../src/features/mcp/resources/template.ts'
import {
  createMatcher,
  type MatchSteps,
  readParts,
  type TemplateMatch,
} from '../../../src/features/mcp/resources/template-match.ts'
import { object, word } from '../json.ts'
import type { Source } from '../source.ts'
import { attempt, demand, demandSame, target } from '../target.ts'

const literals = [
  'note://',
  '/',
  'a',
  '.',
  '?',
  '#',
  ';',
  '&',
  '=',
  ',',
  '%',
  '%41',
  '%zz',
  '-',
  '雪',
  '\ud800',
  ' ',
  '{',
  '}',
  '{{',
  '{}',
  '{,}',
  '{=a}',
]
const operators = ['', '+', '#', '.', '/', ';', '?', '&']
const names = ['a', 'b', 'id', 'c.d', '%41', '_', '__proto__', 'constructor', '', 'a b']

interface Input {
  readonly text: string
  readonly values: Readonly<Record<string, TemplateValue>>
  readonly uri: string
}

export const templates = target<Input>({
  name: 'templates',
  make: source => ({ text: templateText(source), values: valuesOf(source), uri: uriText(source) }),
  check: ({ text, values, uri }) => {
    const written = attempt(() => expandTemplate(text, values), isRefusal)
    if (written !== undefined) demand(/^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]*$/.test(written), () => `no URI: ${written}`)
    const template = attempt(() => parseTemplate(text), isRefusal)
    if (template === undefined) return
    demand(
      written !== undefined || Object.values(values).some(value => typeof value === 'object'),
      () => 'read, but not expanded',
    )
    for (const given of written === undefined ? [uri] : [uri, written]) {
      const found = template.match(given)
      checkSteps(text, given)
      if (found !== undefined) checkMatch(text, found)
    }
  },
})

function isRefusal(error: unknown): boolean {
  return (
    error instanceof Error &&
    (error.message.startsWith('URI template ') || (error instanceof TypeError && error.message.includes('cannot take')))
  )
}

/** What was matched can be written, and is matched again to the same. */
function checkMatch(text: string, found: TemplateMatch): void {
  const template = parseTemplate(text)
  demand(Object.getPrototypeOf(found) === null, () => 'a match inherits something')
  for (const name of Object.keys(found)) demand(template.variables.includes(name), () => `${name} is no variable`)
  const again = template.expand(found)
  const once = template.match(again)
  if (once !== undefined) demandSame(template.match(template.expand(once)), once, `${text} matched again`)
}

function checkSteps(text: string, uri: string): void {
  const parts = readParts(text)
  const steps: MatchSteps = { count: 0 }
  createMatcher(text, parts)(uri, steps)
  const expressions = parts.filter(part => typeof part !== 'string').length
  demand(steps.count <= (uri.length + 1) * Math.max(1, expressions), () => `${steps.count} steps for ${uri.length} characters`)
}

function templateText(source: Source): string {
  const parts = source.list(6, () => {
    if (source.int(5) < 2) return source.once(3) ? source.pick(literals) : source.pick(literals.slice(0, 4))
    const variables = [variable(source), ...source.list(source.once(4) ? 3 : 0, () => variable(source))]
    return `{${source.pick(operators)}${variables.join(',')}}`
  })
  if (source.once(500)) parts.push('{a}/'.repeat(source.int(2_000)))
  return parts.join('')
}

function variable(source: Source): string {
  const name = source.once(12) ? source.pick(names) : `${source.pick(names.slice(0, 7))}${source.once(2) ? source.int(10) : ''}`
  return name + (source.once(4) ? source.pick(['*', ':1', ':3', ':9999', ':0', ':10000', '**']) : '')
}

function valuesOf(source: Source): Record<string, TemplateValue> {
  const entries = source.list(4, () => {
    const kind = source.int(6)
    const value: TemplateValue =
      kind < 4
        ? uriText(source)
        : kind === 4
          ? source.list(3, () => word(source))
          : (object([[word(source), word(source)]]) as Record<string, string>)
    return [`${source.pick(names)}${source.once(2) ? source.int(10) : ''}`, value] as const
  })
  return object(entries) as Record<string, TemplateValue>
}

function uriText(source: Source): string {
  const parts = source.list(8, () => (source.int(3) === 0 ? word(source) : source.pick(literals)))
  if (source.once(500)) parts.push(source.pick(['/a', '%41', '{', 'a']).repeat(source.int(20_000)))
  return parts.join('')
}
