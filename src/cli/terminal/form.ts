/** A form of a server, filled in field by field. */
import type { ElicitResult, ElicitValue } from '../../features/mcp/elicitation/messages.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { ShownQuestion } from './questions.ts'
import type { LineReader } from './reader.ts'
import type { Screen } from './screen.ts'
import { brief, escaped, foreignMark, say } from './text.ts'

/** The schema of a form or of one field. */
type Field = Readonly<Record<string, unknown>>

/** How often a field is asked for that was not filled in as it must be. */
const tries = 5

/** Asks for each field of a form; `/no` declines, Ctrl-C cancels. */
export async function fillForm(
  screen: Screen,
  reader: LineReader,
  { server, schema, secrets = [] }: { readonly server: string; readonly schema: Field; readonly secrets?: readonly string[] },
  signal: AbortSignal,
  shown: ShownQuestion,
): Promise<ElicitResult> {
  const { properties, required } = schema
  const fields = Object.entries(isRecord(properties) ? properties : {})
  const needed = new Set(Array.isArray(required) ? required : [])
  const content = new Map<string, ElicitValue>()
  if (secrets.length > 0)
    screen.line(
      say`   ${screen.paint.warn(`Warning: the form asks for what looks like a password or key (${brief(secrets.join(', '), 200)}). The protocol forbids that: decline unless you know why.`)}`,
    )
  screen.line(say`   ${screen.paint.dim('/no declines, Ctrl-C cancels')}`)
  const onlyYes = wantsOnlyYes(schema)
  if (fields.length === 0 || onlyYes) {
    // It may stand before something that cannot be undone: Enter alone is no yes.
    const said = await reader.ask(`${shown.label(`${server} asks`)}[y]es · [N]o › `, signal)
    if (said === undefined) return { action: 'cancel' }
    if (!/^y(es)?$/i.test(said.trim())) return { action: 'decline' }
    return { action: 'accept', ...(onlyYes && { content: { confirm: true } }) }
  }
  for (const [name, field] of fields) {
    const label = shown.label(`${server}: ${name}`)
    const value = await fillField(screen, reader, { name, label, needed: needed.has(name) }, isRecord(field) ? field : {}, signal)
    if (value === 'decline' || value === 'cancel') return { action: value }
    if (value !== undefined) content.set(name, value.given)
  }
  return { action: 'accept', content: Object.fromEntries(content) }
}

/** A form that asks for nothing but a yes, as servers send it before something that cannot be undone. */
export function wantsOnlyYes({ properties }: Field): boolean {
  if (!isRecord(properties) || Object.keys(properties).length !== 1) return false
  const { confirm } = properties
  return isRecord(confirm) && confirm['type'] === 'boolean'
}

/** Asks for one field until it fits. Undefined: it is left out. */
async function fillField(
  screen: Screen,
  reader: LineReader,
  { name, label, needed }: { readonly name: string; readonly label: string; readonly needed: boolean },
  field: Field,
  signal: AbortSignal,
): Promise<{ readonly given: ElicitValue } | 'decline' | 'cancel' | undefined> {
  const { paint } = screen
  const about = typeof field['description'] === 'string' ? `: ${field['description']}` : ''
  const choices = choicesOf(field)
  screen.line(say`   ${foreignMark}${paint.name(titleOf(name, field))}${paint.dim(brief(about, 300))}`)
  for (const { value, title } of choices)
    screen.line(say`   ${foreignMark}  ${brief(value)}${title === value ? '' : paint.dim(`  ${brief(title)}`)}`)
  for (let tried = 0; tried < tries; tried++) {
    const said = (await reader.ask(`${label}${hint(field, needed)}› `, signal))?.trim()
    if (said === undefined) return 'cancel'
    if (said === '/no') return 'decline'
    if (said === '' && (field['default'] !== undefined || !needed)) return undefined
    const value = said === '' ? undefined : readValue(field, choices, said)
    if (value !== undefined) return { given: value }
    screen.line(say`   ${paint.warn(said === '' ? 'A value is required.' : 'This value is not valid.')}`)
  }
  return 'cancel'
}

/** A value that can be chosen, and its title. */
interface Choice {
  readonly value: string
  readonly title: string
}

/** `enum`, `enum` with `enumNames`, `oneOf` and `anyOf` with titles; of lists those of their items. */
function choicesOf(field: Field): readonly Choice[] {
  const of = field['type'] === 'array' && isRecord(field['items']) ? field['items'] : field
  const titled = [of['oneOf'], of['anyOf']].find(Array.isArray)
  if (titled !== undefined)
    return titled.filter(isRecord).map(each => ({ value: String(each['const']), title: String(each['title'] ?? each['const']) }))
  const names: readonly unknown[] = Array.isArray(of['enumNames']) ? of['enumNames'] : []
  const values: readonly unknown[] = Array.isArray(of['enum']) ? of['enum'] : []
  return values.map((value, at) => ({ value: String(value), title: String(names[at] ?? value) }))
}

/** What was typed as the type of the field; undefined where it does not fit. */
function readValue(field: Field, choices: readonly Choice[], said: string): ElicitValue | undefined {
  const chosen = (text: string): string | undefined =>
    choices.length === 0 ? text : choices.find(({ value, title }) => value === text || title === text)?.value
  switch (field['type']) {
    case 'boolean':
      return /^(y|yes|true)$/i.test(said) ? true : /^(n|no|false)$/i.test(said) ? false : undefined
    case 'integer':
      return Number.isInteger(Number(said)) ? Number(said) : undefined
    case 'number':
      return Number.isFinite(Number(said)) ? Number(said) : undefined
    case 'array': {
      const all = said.split(',').map(text => chosen(text.trim()))
      return all.includes(undefined) ? undefined : all.filter(text => text !== undefined)
    }
    default:
      return chosen(said)
  }
}

/** The title of a field, else its name. */
function titleOf(name: string, field: Field): string {
  return brief(typeof field['title'] === 'string' ? field['title'] : name)
}

/** What the prompt of a field says of its type and default. */
function hint(field: Field, needed: boolean): string {
  const kind = field['type'] === 'boolean' ? 'y/n ' : field['type'] === 'array' ? 'separated by commas ' : ''
  if (field['default'] !== undefined) return `${kind}[${brief(escaped(JSON.stringify(field['default'])), 30)}] `
  return needed ? kind : `${kind}(optional) `
}
