/** What a user says, as it goes into a conversation: words, resources put beside them, and prompts of servers called by name. */
import { problem } from '../../core/problem.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { Prompt } from '../../features/mcp/prompts/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Op } from '../../stores/store.ts'
import { type ModelMessage, textIn } from '../models/model.ts'
import { modelBlocksOf, quoteExceptHostText, quoteFromServer, resourceBlock, textBlock } from '../models/quoted.ts'
import { readServerResource, shortenResult } from './host-tools.ts'
import type { LoopParts, LoopServer } from './ports.ts'

/** A resource to be put beside a message. */
export interface Attachment {
  readonly server: string
  readonly uri: string
}

/** What goes along with a message of the user. */
export interface UserInputOptions {
  /** Resources that go beside the message. */
  readonly attach?: readonly Attachment[]
  /** Gives up the turn. */
  readonly signal?: AbortSignal
}

interface UserInput {
  readonly text: string
  readonly messages: readonly ModelMessage[]
  /** To be written with it. */
  readonly ops: readonly Op[]
}

/** Attachments of one message. */
const most = 16

/** Turns what the user typed into messages for the model: text, attachments, or a prompt called by `/name`. */
export async function readUserInput(
  parts: LoopParts,
  conversation: string,
  input: string | readonly LiveBlock[],
  { attach = [], signal }: UserInputOptions,
): Promise<UserInput> {
  const said = typeof input === 'string' ? input : textIn(input)
  checkLength(parts, said)
  if (attach.length > most)
    throw problem('INVALID_INPUT', `${attach.length} attachments are more than ${most}`, { suggestion: 'Attach fewer' })
  const ops: Op[] = []
  const attached: LiveBlock[] = []
  for (const { server, uri } of attach) {
    for (const contents of await readServerResource(parts.servers(), server, uri, signal)) {
      const short = shortenResult([resourceBlock(contents)], conversation, `attached-${parts.newId()}`, parts.limits)
      // Cut first, then quoted: a quotation that is cut has no end.
      attached.push(...quoteExceptHostText('resource', { server, uri: contents.uri, type: contents.mimeType }, short.content))
      ops.push(...short.ops)
    }
  }
  const lead = typeof input === 'string' && isCommand(input) ? await runPrompt(parts.servers(), input, signal) : undefined
  if (lead !== undefined) return { text: said, messages: [{ role: 'user', content: [...attached, ...lead] }], ops }
  const own = typeof input === 'string' ? [textBlock(input.startsWith('//') ? input.slice(1) : input)] : input
  return { text: said, messages: [{ role: 'user', content: [...attached, ...own] }], ops }
}

/** Two slashes stand for one that means nothing. */
function isCommand(input: string): boolean {
  return input.startsWith('/') && !input.startsWith('//')
}

function checkLength({ limits }: LoopParts, said: string): void {
  if (said.length <= limits.messageLength) return
  throw problem(
    'PAYLOAD_TOO_LARGE',
    `The message has ${said.length} characters, the most are ${limits.messageLength}: ${clip(said)}`,
    {
      suggestion: 'Send less at once, or attach it as a resource',
    },
  )
}

/** A prompt that can be called. */
export interface OfferedPrompt {
  /** What is typed behind the slash. */
  readonly command: string
  readonly server: string
  readonly prompt: Prompt
}

/** Prompts of one server that are looked at: none of them hides those of another, or the names that both want. */
const perServer = 500

/** All of them; those whose names several servers use carry their server in front. */
export async function offeredPrompts(servers: readonly LoopServer[], signal?: AbortSignal): Promise<readonly OfferedPrompt[]> {
  const found: { server: string; prompt: Prompt }[] = []
  for (const { name, client } of servers) {
    if (client?.capabilities['prompts'] === undefined) continue
    let own = 0
    try {
      for await (const prompt of client.prompts(signal === undefined ? {} : { signal })) {
        if (own++ >= perServer) break
        found.push({ server: name, prompt })
      }
    } catch (error) {
      signal?.throwIfAborted()
      // One server that cannot list its prompts does not hide those of others.
      if (servers.length === 1) throw error
    }
  }
  const count = new Map<string, number>()
  for (const { prompt } of found) count.set(prompt.name, (count.get(prompt.name) ?? 0) + 1)
  return found.map(one => {
    const alone = count.get(one.prompt.name) === 1 && !isBorrowed(one.prompt.name, one.server, servers)
    return { ...one, command: alone ? one.prompt.name : `${one.server}:${one.prompt.name}` }
  })
}

/** A name that reads as another server's prompt, with that one's name in front, is not given. */
function isBorrowed(name: string, server: string, servers: readonly LoopServer[]): boolean {
  return servers.some(other => other.name !== server && name.startsWith(`${other.name}:`))
}

/** The prompt as what the user says: in its server's words, those that it puts into the model's mouth too. */
async function runPrompt(
  servers: readonly LoopServer[],
  input: string,
  signal: AbortSignal | undefined,
): Promise<readonly LiveBlock[]> {
  const [, command = '', rest = ''] = /^\/(\S+)\s*([\s\S]*)$/.exec(input) ?? []
  const offered = await offeredPrompts(servers, signal)
  const found = offered.find(one => one.command === command || `${one.server}:${one.prompt.name}` === command)
  const client = servers.find(({ name }) => name === found?.server)?.client
  if (found === undefined || client === undefined) throw unknown(command, offered)
  const args = readArguments(found.prompt, rest)
  const missing = (found.prompt.arguments ?? []).filter(({ name, required }) => required === true && args[name] === undefined)
  if (missing.length > 0)
    throw problem('INVALID_INPUT', `/${command} needs ${missing.map(({ name }) => name).join(', ')}`, {
      suggestion: `Write /${command} ${missing.map(({ name }) => `${name}=…`).join(' ')}`,
    })
  const { messages } = await client.getPrompt(found.prompt.name, args, signal === undefined ? {} : { signal })
  const about = { server: found.server, name: found.prompt.name }
  return messages.flatMap(({ role, content }) => {
    return quoteFromServer('server-prompt', { ...about, ...(role !== 'user' && { role }) }, modelBlocksOf(content))
  })
}

/** By name, else in the order of the declaration; the last one takes all that is left. */
function readArguments({ arguments: declared = [] }: Prompt, rest: string): Readonly<Record<string, string>> {
  const names = new Set(declared.map(({ name }) => name))
  const given = new Map<string, string>()
  const free: string[] = []
  for (const [token = ''] of rest.matchAll(/[\w.-]+="[^"]*"|"[^"]*"|\S+/g)) {
    const [, key = '', value = ''] = /^([\w.-]+)=([\s\S]*)$/.exec(token) ?? []
    if (names.has(key)) given.set(key, unquoted(value))
    else free.push(unquoted(token))
  }
  const open = declared.filter(({ name }) => !given.has(name))
  for (const [at, { name }] of open.entries()) {
    const value = at === open.length - 1 ? free.slice(at).join(' ') : free[at]
    if (value !== undefined && value !== '') given.set(name, value)
  }
  return Object.fromEntries(given)
}

function unquoted(token: string): string {
  return token.replace(/^"([\s\S]*)"$/, '$1')
}

/** What could stand where the line ends: commands, names of arguments, or values that the server proposes. */
export async function completeCommand(servers: readonly LoopServer[], line: string): Promise<readonly string[]> {
  if (!line.startsWith('/') || line.startsWith('//')) return []
  const offered = await offeredPrompts(servers)
  const [, command = '', rest] = /^\/(\S*)(?:\s+([\s\S]*))?$/.exec(line) ?? []
  if (rest === undefined) return offered.filter(one => one.command.startsWith(command)).map(one => `/${one.command}`)
  const found = offered.find(one => one.command === command)
  const client = servers.find(({ name }) => name === found?.server)?.client
  if (found === undefined || client === undefined) return []
  const last = /\S*$/.exec(rest)?.[0] ?? ''
  const head = line.slice(0, line.length - last.length)
  const [, key, value = ''] = /^([\w.-]+)=(.*)$/.exec(last) ?? []
  const declared = found.prompt.arguments ?? []
  if (key === undefined) return declared.filter(({ name }) => name.startsWith(last)).map(({ name }) => `${head}${name}=`)
  if (!declared.some(({ name }) => name === key) || client.capabilities['completions'] === undefined) return []
  const context = readArguments(found.prompt, rest.slice(0, rest.length - last.length))
  const { values } = await client.complete({ prompt: found.prompt.name }, { name: key, value }, { arguments: context })
  return values.map(one => `${head}${key}=${/\s/.test(one) ? `"${one}"` : one}`)
}

function unknown(command: string, offered: readonly OfferedPrompt[]) {
  const names = offered.slice(0, 12).map(one => `/${one.command}`)
  return problem('INVALID_INPUT', `There is no prompt /${clip(command)}`, {
    suggestion:
      names.length > 0
        ? `There are ${names.join(', ')}; begin with // to send a slash`
        : 'No server offers prompts; begin with // to send a slash',
  })
}
