/**
 * The built-in assistant: no network, no key, no surprises. It does what plain commands say ("list tools", "call add a=1 b=2",
 * "remember the milk"), tells what tools gave, and answers questions from what hooks put into its context.
 */
import type { ModelInfo } from '../../features/live/model-info/messages.ts'
import { type Model, type ModelMessage, type ModelPart, type ModelRequest, textIn } from './model.ts'
import { readCommand } from './offline-commands.ts'
import { bestSentences, summary } from './offline-sentences.ts'
import { type Quote, readQuotes, unquoted } from './quoted.ts'
import { estimateTokens, requestTokens } from './tokens.ts'

const info: ModelInfo = { id: 'offline-assistant', vendor: 'vivarium', contextWindow: 100_000, capabilities: ['tools'] }

const introduction =
  'I am the offline assistant: I can call tools ("list tools", "call <tool> key=value"), remember things where a tool for that is there, and answer from what servers add to the conversation.'

type Reply =
  | { readonly text: string }
  | { readonly text: string; readonly call: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> } }

/** How the offline assistant answers. */
export interface OfflineOptions {
  /** What it says of itself. */
  readonly info?: Partial<ModelInfo>
}

/** @example const host = await createHost({ servers, model: offline() }) */
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
      if ('call' in reply) yield { type: 'tool_use', id: `offline_${++calls}`, ...reply.call }
      yield endOf(request, reply, told.id)
    },
  }
}

function endOf(request: ModelRequest, reply: Reply, model: string): ModelPart {
  const called = 'call' in reply
  const said = estimateTokens(reply.text) + (called ? estimateTokens(JSON.stringify(reply.call)) : 0)
  const usage = { inputTokens: requestTokens(request), outputTokens: said }
  return { type: 'end', finishReason: called ? 'tool_use' : 'end_turn', usage, model }
}

function replyTo({ system, messages, tools }: ModelRequest): Reply {
  const last = messages.at(-1)
  if (last?.role === 'tool') return { text: told(last) }
  const { own: said, quotes } = readQuotes(last === undefined ? '' : textIn(last.content))
  const own = said === '' ? wanted(quotes) : said
  const event = quotes.find(({ kind }) => kind === 'event')
  if (own === '' && event !== undefined) return { text: announced(event) }
  const command = readCommand(own, tools)
  if (command?.do === 'call') return { text: '', call: { name: command.tool, arguments: command.arguments } }
  if (command?.do === 'say') return { text: command.text }
  if (/^(summari[sz]e|sum up|consolidate|shorten)\b/i.test(own)) return { text: summary(own.replace(/^[^:\n]{0,120}:\s*/, '')) }
  return { text: answer(own, [...readQuotes(textIn(system)).quotes, ...quotes]) }
}

/** A prompt that the user called by name, or what a server asks of the model, stands for words of the user's own. */
function wanted(quotes: readonly Quote[]): string {
  return quotes.flatMap(({ kind, text }) => (kind === 'server-prompt' || kind === 'server-request' ? [text] : [])).join('\n')
}

function told({ results }: ModelMessage & { role: 'tool' }): string {
  const texts = results.map(({ content, isError }) => {
    const text = unquoted(textIn(content))
    if (isError) return `That did not work: ${text}`
    return text === '' ? 'Done.' : text
  })
  return texts.join('\n')
}

function announced({ about, text }: Quote): string {
  return `${about.get('server') ?? 'A server'} says: ${text.trim() === '' ? '(nothing)' : text.trim()}`
}

/** Only what was given is told; where it does not speak of the question, that is said. */
function answer(question: string, given: readonly Quote[]): string {
  const found = bestSentences(
    question,
    given.map(({ text }) => text),
  )
  if (found.length > 0) return `From what I was given: ${found.join(' ')}`
  return given.length > 0 ? `Nothing that I was given speaks of that. ${introduction}` : introduction
}
