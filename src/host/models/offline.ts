/**
 * The offline assistant: a model without network or key. It understands plain commands ("list tools", "call add a=1 b=2", "remember the
 * milk"), repeats tool results, and answers questions from quoted context.
 */
import type { ModelInfo } from '../../features/live/model-info/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import {
  estimateTokens,
  type Model,
  type ModelMessage,
  type ModelPart,
  type ModelRequest,
  type ModelTool,
  type ModelToolUse,
  requestTokens,
  textIn,
} from './model.ts'
import { type Quote, readQuotes, unquoted } from './quoted.ts'

const info: ModelInfo = { id: 'offline-assistant', vendor: 'vivarium', contextWindow: 100_000, capabilities: ['tools'] }

const introduction =
  'I am the offline assistant: I can call tools ("list tools", "call <tool> key=value"), remember things if a tool for that is available, and answer from what servers add to the conversation.'

/** What it answers: text, and perhaps a call. */
interface Reply {
  readonly text: string
  readonly call?: Pick<ModelToolUse, 'name' | 'arguments'>
}

/** Options of the offline assistant. */
export interface OfflineOptions {
  /** Overrides members of `info`. Default: those of the offline assistant. */
  readonly info?: Partial<ModelInfo>
}

/**
 * Creates a model that needs no network and no key: it answers from simple rules, and calls tools that you name. For trying things out.
 * @example const host = await createHost({ servers, model: offline() })
 */
export function offline(options: OfflineOptions = {}): Model {
  const told = { ...info, ...options.info }
  let calls = 0
  return {
    info: told,
    traits: { cost: 1, speed: 1, intelligence: 0 },
    price: { input: 0, output: 0 },
    async *generate(request, { signal }) {
      signal.throwIfAborted()
      const reply = replyTo(request)
      for (const delta of reply.text.match(/\S+\s*|\s+/g) ?? []) {
        signal.throwIfAborted()
        yield { type: 'text', delta }
      }
      if (reply.call !== undefined) yield { type: 'tool_use', id: `offline_${++calls}`, ...reply.call }
      yield endOf(request, reply, told.id)
    },
  }
}

/** The end part, with estimated usage. */
function endOf(request: ModelRequest, reply: Reply, model: string): ModelPart {
  const called = reply.call !== undefined
  const said = estimateTokens(reply.text) + (called ? estimateTokens(JSON.stringify(reply.call)) : 0)
  const usage = { inputTokens: requestTokens(request), outputTokens: said }
  return { type: 'end', finishReason: called ? 'tool_use' : 'end_turn', usage, model }
}

/** Chooses the reply: tool result, event, command, summary or answer. */
function replyTo({ system, messages, tools }: ModelRequest): Reply {
  const last = messages.at(-1)
  if (last?.role === 'tool') return { text: told(last) }
  const { own: said, quotes } = readQuotes(last === undefined ? '' : textIn(last.content))
  const own = said === '' ? wanted(quotes) : said
  const event = quotes.find(({ kind }) => kind === 'event')
  if (own === '' && event !== undefined) return { text: announced(event) }
  const command = readCommand(own, tools)
  if (command !== undefined) return command
  if (/^(summari[sz]e|sum up|consolidate|shorten)\b/i.test(own)) return { text: summary(own.replace(/^[^:\n]{0,120}:\s*/, '')) }
  return { text: answer(own, [...readQuotes(textIn(system)).quotes, ...quotes]) }
}

/** A called prompt, or a server's request, counts as the user's words. */
function wanted(quotes: readonly Quote[]): string {
  return quotes.flatMap(({ kind, text }) => (kind === 'server-prompt' || kind === 'server-request' ? [text] : [])).join('\n')
}

/** Repeats the results of tools. */
function told({ results }: ModelMessage & { role: 'tool' }): string {
  const texts = results.map(({ content, isError }) => {
    const text = unquoted(textIn(content))
    if (isError) return `The call failed: ${text}`
    return text === '' ? 'Done.' : text
  })
  return texts.join('\n')
}

/** Announces an event. */
function announced({ about, text }: Quote): string {
  return `${about.get('server') ?? 'A server'} says: ${text.trim() === '' ? '(nothing)' : text.trim()}`
}

/** Answers only from the given quotes, and says so where they do not help. */
function answer(question: string, given: readonly Quote[]): string {
  const found = bestSentences(
    question,
    given.map(({ text }) => text),
  )
  if (found.length > 0) return `From the available information: ${found.join(' ')}`
  return given.length > 0 ? `The available information does not answer that. ${introduction}` : introduction
}

// Commands, matched against the available tools.

/** Phrases for storing a memory. */
const remembering = /^(?:please\s+)?(?:remember|note|memori[sz]e)(?:\s+that)?\s+([\s\S]+)$/i
/** Tools that store a memory. */
const memoryTool = /(?:^|[_-])(?:remember|memori[sz]e|store_memory|add_memory|save_memory|add_note|note_add|write_note)$/i

/** The command in a text; undefined where it is none. */
function readCommand(text: string, tools: readonly ModelTool[]): Reply | undefined {
  if (/^help\W*$/i.test(text)) return { text: help(tools) }
  if (/^(?:list|show|what)\s+(?:the\s+|all\s+)?tools\W*$/i.test(text)) return { text: listed(tools) }
  const [, name, rest = ''] = /^(?:please\s+)?(?:call|run|use)\s+(?:the\s+)?(?:tool\s+)?([\w.-]+)\s*([\s\S]*)$/i.exec(text) ?? []
  if (name !== undefined) {
    const tool = findTool(name, tools)
    return tool === undefined ? { text: unknown(name, tools) } : (misnamed(tool, rest) ?? callWith(tool, rest))
  }
  const [, what] = remembering.exec(text) ?? []
  const memory = what === undefined ? undefined : tools.find(tool => memoryTool.test(tool.name))
  if (memory !== undefined && what !== undefined) return callWith(memory, what)
  const [, first = '', tail = ''] = /^([\w.-]+)(?:\s+([\s\S]*))?$/.exec(text) ?? []
  const named = tools.find(tool => tool.name.toLowerCase() === first.toLowerCase())
  return named === undefined ? undefined : callWith(named, tail)
}

/** A tool by its full name, otherwise by a unique ending, since a prefix names the server. */
function findTool(name: string, tools: readonly ModelTool[]): ModelTool | undefined {
  const wanted = name.toLowerCase()
  const exact = tools.find(tool => tool.name.toLowerCase() === wanted)
  if (exact !== undefined) return exact
  const ending = tools.filter(tool => tool.name.toLowerCase().endsWith(`_${wanted}`))
  return ending.length === 1 ? ending[0] : undefined
}

const pair = /([\w.-]+)=(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(\[[^\]]*\]|\{[^}]*\}|[^\s]+))/g

/** Reports unknown argument names, where the text consists only of pairs. */
function misnamed(tool: ModelTool, text: string): Reply | undefined {
  const properties = propertiesOf(tool)
  if (properties.size === 0 || text.trim() === '' || text.replace(pair, '').trim() !== '') return undefined
  const wrong = [...text.matchAll(pair)].map(([, key = '']) => key).filter(key => !properties.has(key))
  if (wrong.length === 0) return undefined
  return { text: `${tool.name} has no ${wrong.map(key => clip(key)).join(', ')}. It takes ${[...properties.keys()].join(', ')}` }
}

/** A call with parsed arguments, or what is missing. */
function callWith(tool: ModelTool, text: string): Reply {
  const args = readArguments(tool, text.trim())
  if (typeof args === 'string') return { text: args }
  const missing = requiredOf(tool).filter(name => !Object.hasOwn(args, name))
  if (missing.length === 0) return { text: '', call: { name: tool.name, arguments: args } }
  const example = `call ${tool.name} ${missing.map(name => `${name}=…`).join(' ')}`
  return { text: `${tool.name} needs ${missing.join(', ')}. Write: ${example}` }
}

/** Reads JSON, `key=value` pairs, or the whole text for a single text argument. A string is an error message. */
function readArguments(tool: ModelTool, text: string): Readonly<Record<string, unknown>> | string {
  const properties = propertiesOf(tool)
  if (text === '') return {}
  if (text.startsWith('{')) {
    try {
      const value: unknown = JSON.parse(text)
      if (isRecord(value)) return value
    } catch {
      return `The arguments are not valid JSON: ${clip(text)}`
    }
  }
  const pairs = [...text.matchAll(pair)]
  const known = pairs.filter(([, key = '']) => properties.has(key) || properties.size === 0)
  if (known.length === 0) return alone(tool, properties, text)
  return Object.fromEntries(
    known.map(([, key = '', double, single, bare]) => {
      const raw = double === undefined ? (single ?? bare ?? '') : double.replace(/\\(.)/g, '$1')
      return [key, coerce(raw, properties.get(key))]
    }),
  )
}

/** Uses the whole text as the only fitting argument. */
function alone(
  tool: ModelTool,
  properties: ReadonlyMap<string, unknown>,
  text: string,
): Readonly<Record<string, unknown>> | string {
  const texts = [...properties].filter(([, schema]) => isRecord(schema) && schema['type'] === 'string').map(([name]) => name)
  const required = requiredOf(tool)
  const target = required.length === 1 ? required[0] : (texts.find(name => required.includes(name)) ?? texts[0])
  if (target === undefined)
    return `${tool.name} takes ${[...properties.keys()].join(', ') || 'nothing'}. Write: call ${tool.name} key=value`
  return { [target]: coerce(text.replace(/^"([\s\S]*)"$/, '$1'), properties.get(target)) }
}

/** Converts a text to the schema's type; what does not fit stays text, and the tool reports it. */
function coerce(raw: string, schema: unknown): unknown {
  const type = isRecord(schema) ? schema['type'] : undefined
  if (type === 'number' || type === 'integer') return raw.trim() !== '' && Number.isFinite(Number(raw)) ? Number(raw) : raw
  if (type === 'boolean') return /^(true|yes|on)$/i.test(raw) ? true : /^(false|no|off)$/i.test(raw) ? false : raw
  if (type === 'array' && !raw.startsWith('[')) {
    const items = isRecord(schema) ? schema['items'] : undefined
    return raw.split(',').map(item => coerce(item.trim(), items))
  }
  if (type !== 'array' && type !== 'object' && type !== undefined) return raw
  try {
    return JSON.parse(raw)
  } catch {
    return raw
  }
}

/** The declared arguments of a tool. */
function propertiesOf({ inputSchema }: ModelTool): ReadonlyMap<string, unknown> {
  const properties = inputSchema['properties']
  return new Map(isRecord(properties) ? Object.entries(properties) : [])
}

/** The names of required arguments. */
function requiredOf({ inputSchema }: ModelTool): readonly string[] {
  const required = inputSchema['required']
  return Array.isArray(required) ? required.filter(name => typeof name === 'string') : []
}

/** A list of tools with their arguments. */
function listed(tools: readonly ModelTool[]): string {
  if (tools.length === 0) return 'There are no tools.'
  return tools
    .map(tool => `- ${signature(tool)}${tool.description === undefined ? '' : `: ${clip(described(tool.description), 120)}`}`)
    .join('\n')
}

/** A description with its server's name. */
function described(description: string): string {
  const [quote] = readQuotes(description).quotes
  return quote === undefined ? description : `[${quote.about.get('server') ?? ''}] ${quote.text}`.trim()
}

/** A tool's name with its arguments; optional ones in brackets. */
function signature(tool: ModelTool): string {
  const required = requiredOf(tool)
  const names = [...propertiesOf(tool).keys()].map(name => (required.includes(name) ? name : `[${name}]`))
  return names.length === 0 ? tool.name : `${tool.name} ${names.join(' ')}`
}

function unknown(name: string, tools: readonly ModelTool[]): string {
  const near = tools.filter(tool => tool.name.toLowerCase().includes(name.toLowerCase()))
  return `There is no tool ${clip(name)}. ${near.length > 0 ? `Did you mean ${near.map(tool => tool.name).join(' or ')}?` : 'Say "list tools" to see them.'}`
}

function help(tools: readonly ModelTool[]): string {
  return `Say "list tools" (there are ${tools.length}), "call <tool> key=value", "remember …", or ask about the information from servers.`
}

// Answers: finds the sentences that share words with the question.

const common = new Set(
  'a an and are about as at be but by can did do does for from had has have how i in is it its me my of on or our please tell that the their them there they this to was we were what when where which who why will with would you your'.split(
    ' ',
  ),
)

/** At most three sentences, best first. */
function bestSentences(question: string, texts: readonly string[]): readonly string[] {
  const wanted = new Set(words(question))
  if (wanted.size === 0) return []
  const rated = texts
    .flatMap(text => sentences(text))
    .map((sentence, order) => ({ sentence, order, score: scoreOf(sentence, wanted) }))
  return rated
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.order - b.order)
    .slice(0, 3)
    .map(({ sentence }) => sentence)
}

/** The first sentences, up to about 400 characters. */
function summary(text: string): string {
  let short = ''
  for (const sentence of sentences(text)) {
    if (short !== '' && short.length + sentence.length > 400) break
    short += `${short === '' ? '' : ' '}${sentence}`
  }
  return short === '' ? 'There is nothing to summarise.' : short.slice(0, 1_000)
}

/** How many wanted words a sentence contains. */
function scoreOf(sentence: string, wanted: ReadonlySet<string>): number {
  return new Set(words(sentence).filter(word => wanted.has(word))).size
}

/** The sentences of a text. */
function sentences(text: string): readonly string[] {
  return text
    .split(/(?<=[.!?])\s+|\n+/)
    .map(sentence => sentence.trim())
    .filter(sentence => sentence !== '')
}

/** The significant words, without common endings. */
function words(text: string): readonly string[] {
  const all = text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []
  return all.filter(word => !common.has(word)).map(word => (word.length > 4 ? word.replace(/(?:ing|ed|es|s)$/, '') : word))
}
