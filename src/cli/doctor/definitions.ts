/** What is wrong with what a server offers, though it can be reached: schemas, names, sizes. */

import type { Tool } from '../../client/index.ts'
import { compilePeerSchema } from '../../core/schema/peer.ts'
import { UnsupportedSchema } from '../../core/schema/schema.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { messageOf } from '../../stores/store.ts'
import type { Lists } from '../lists.ts'
import { brief } from '../terminal/text.ts'
import { type Finding, fail, warn } from './finding.ts'

/** What models' interfaces take. */
const longestName = 64
/** More tools than this at once are refused by some models. */
const mostTools = 128
/** Of all definitions together: they are sent with every question. */
const manyTokens = 20_000
/** A rough average for JSON. */
const charsPerToken = 4

/** What is wrong with tools and resources that a server lists. */
export function examineOffers({ tools = [], resources = [] }: Lists): readonly Finding[] {
  const names = tools.map(({ name }) => name)
  const uris = resources.map(({ uri }) => uri)
  return [
    ...tools.flatMap(examineTool),
    ...twice('tool name', names),
    ...twice('resource', uris),
    ...examineSize(tools),
    ...uris
      .filter(uri => typeof uri !== 'string' || !/^[a-z][a-z0-9+.-]*:/i.test(uri))
      .map(uri => warn('resource', `${clip(String(uri))} is not a URI`, 'Start it with a scheme: note://…')),
  ]
}

/** What is wrong with one tool. */
function examineTool(tool: Tool): readonly Finding[] {
  const { name, description, inputSchema, outputSchema } = tool
  const found: Finding[] = []
  const shown = clip(String(name))
  if (typeof name !== 'string' || name === '') return [fail('name', 'A tool has no name', 'Give it a name')]
  if (name.length > longestName)
    found.push(
      warn(
        'name',
        `${shown} has ${name.length} characters`,
        `Use at most ${longestName}: models refuse longer names, and clients prepend the name of the server`,
      ),
    )
  if (!/^[A-Za-z0-9_.-]+$/.test(name))
    found.push(warn('name', `${shown} has characters other than A-Z a-z 0-9 _ - .`, 'Rename it: models refuse other characters'))
  else if (name.includes('.')) found.push(warn('name', `${shown} contains a dot`, 'Use _ or -: some models refuse dots'))
  if (description === undefined || description.trim() === '')
    found.push(
      warn('description', `${shown} has no description`, 'Describe in a sentence what it does: the model sees nothing else'),
    )
  found.push(...examineSchema(`the input of ${shown}`, inputSchema, true))
  if (outputSchema !== undefined) found.push(...examineSchema(`the output of ${shown}`, outputSchema, false))
  return found
}

/** What is wrong with a schema: it does not compile, is not checked whole, or is refused by some models. */
function examineSchema(what: string, schema: unknown, input: boolean): readonly Finding[] {
  if (!isRecord(schema)) return [fail('schema', `${what} has no schema`, 'Set it to {"type": "object"}')]
  if (input && schema['type'] !== 'object')
    return [fail('schema', `${what} has the type ${clip(JSON.stringify(schema['type']) ?? 'none')}`, 'Set the type to "object"')]
  try {
    const { unchecked } = compilePeerSchema(schema)
    const found = unchecked.map(each =>
      warn('schema', `${what}: ${brief(each, 160)}`, 'Simplify the schema: this part is not checked'),
    )
    const lone = input ? ['anyOf', 'oneOf', 'allOf'].find(word => word in schema) : undefined
    return lone === undefined
      ? found
      : [
          ...found,
          warn(
            'schema',
            `${what} has ${lone} at the top level`,
            'Move it into a property: some models refuse it at the top level',
          ),
        ]
  } catch (error) {
    const said = `${what}: ${brief(messageOf(error), 200)}`
    // Calls work all the same: what is beyond the limits is not checked.
    if (error instanceof UnsupportedSchema)
      return [
        warn('schema', said, 'Make the schema smaller: clients with a limit skip the check, and models pay for every token'),
      ]
    return [fail('schema', said, 'Correct the schema')]
  }
}

/** A finding for each name that stands twice in a list. */
function twice(what: string, names: readonly string[]): readonly Finding[] {
  const doubled = new Set(names.filter((name, at) => names.indexOf(name) !== at))
  return [...doubled].map(name => fail('name', `The ${what} ${clip(String(name))} is listed twice`, 'Rename one of the two'))
}

/** Whether there are too many tools, or too much of them. */
function examineSize(tools: readonly Tool[]): readonly Finding[] {
  const found: Finding[] = []
  if (tools.length > mostTools)
    found.push(warn('size', `The server has ${tools.length} tools`, `Offer fewer: most models accept at most ${mostTools}`))
  const tokens = Math.round(JSON.stringify(tools).length / charsPerToken)
  if (tokens > manyTokens)
    found.push(
      warn('size', `The tool definitions take about ${tokens} tokens of every prompt`, 'Shorten descriptions and schemas'),
    )
  return found
}
