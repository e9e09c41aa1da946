/** Converts what a user sends into messages: text, attached resources, and prompts called as `/name`. */
import { problem } from '../../core/problem.ts'
import type { LiveBlock } from '../../features/live/content/messages.ts'
import type { Prompt } from '../../features/mcp/prompts/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Op } from '../../stores/store.ts'
import { type ModelMessage, textIn } from '../models/model.ts'
import { modelBlocksOf, quoteExceptHostText, quoteFromServer, resourceBlock, textBlock } from '../models/quoted.ts'
import { readServerResource, shortenResult } from './host-tools.ts'
import type { LoopParts, LoopServer } from './ports.ts'

/** A resource that is attached to a message. */
export interface Attachment {
  /** The server that has the resource. */
  readonly server: string
  /** The URI of the resource. */
  readonly uri: string
}

/** Options of a user's message. */
export interface UserInputOptions {
  /** Resources to attach. */
  readonly attach?: readonly Attachment[]
  /** Cancels the turn. */
  readonly signal?: AbortSignal
}

/** The message, ready to be stored. */
interface UserInput {
  readonly text: string
  readonly messages: readonly ModelMessage[]
  /** Operations to commit with it. */
  readonly ops: readonly Op[]
}

/** Attachments per message. */
const most = 16

/** Converts the user's input into messages for the model. */
export async function readUserInput(
  parts: LoopParts,
  conversation: string,
  input: string | readonly LiveBlock[],
  { attach = [], signal }: UserInputOptions,
): Promise<UserInput> {
  const said = typeof input === 'string' ? input : textIn(input)
  checkLength(parts, said)
  if (attach.length > most)
    throw problem('INVALID_INPUT', `The message has ${attach.length} attachments, more than ${most} (the limit)`, {
      suggestion: 'Attach fewer',
    })
  const ops: Op[] = []
  const attached: LiveBlock[] = []
  for (const { server, uri } of attach) {
    for (const contents of await readServerResource(parts.servers(), server, uri, signal)) {
      const short = shortenResult([resourceBlock(contents)], conversation, `attached-${parts.newId()}`, parts.limits)
      // Shortened before it is quoted, so that the end mark is not cut off.
      attached.push(...quoteExceptHostText('resource', { server, uri: contents.uri, type: contents.mimeType }, short.content))
      ops.push(...short.ops)
    }
  }
  const lead = typeof input === 'string' && isCommand(input) ? await runPrompt(parts.servers(), input, signal) : undefined
  if (lead !== undefined) return { text: said, messages: [{ role: 'user', content: [...attached, ...lead] }], ops }
  const own = typeof input === 'string' ? [textBlock(input.startsWith('//') ? input.slice(1) : input)] : input
  return { text: said, messages: [{ role: 'user', content: [...attached, ...own] }], ops }
}

/** A leading `//` escapes the slash. */
function isCommand(input: string): boolean {
  return input.startsWith('/') && !input.startsWith('//')
}

/** Throws where the message is too long. */
function checkLength({ limits }: LoopParts, said: string): void {
  if (said.length <= limits.messageLength) return
  const message = `The message has ${said.length} characters, more than ${limits.messageLength} (the limit): ${clip(said)}`
  throw problem('PAYLOAD_TOO_LARGE', message, { suggestion: 'Send a shorter message, or attach the text as a resource' })
}

/** A prompt that can be called. */
export interface OfferedPrompt {
  /** What is typed after the slash. */
  readonly command: string
  /** The server that has the prompt. */
  readonly server: string
  /** The prompt, as the server lists it. */
  readonly prompt: Prompt
}

/** Prompts per server, so that none crowds out the others. */
const perServer = 500

/** All prompts; where several servers use a name, the server's name goes before it. */
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
      // A server that fails does not hide the prompts of others.
      if (servers.length === 1) throw error
    }
  }
  const byName = Map.groupBy(found, ({ prompt }) => prompt.name)
  return found.map(one => {
    const alone = byName.get(one.prompt.name)?.length === 1 && !isBorrowed(one.prompt.name, one.server, servers)
    return { ...one, command: alone ? one.prompt.name : `${one.server}:${one.prompt.name}` }
  })
}

/** Whether a name looks like another server's prompt with that server's prefix. */
function isBorrowed(name: string, server: string, servers: readonly LoopServer[]): boolean {
  return servers.some(other => other.name !== server && name.startsWith(`${other.name}:`))
}

/** Gets a prompt and quotes its messages, including those with the role of the assistant. */
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

/** Reads arguments by name, otherwise in declaration order; the last one takes the rest. */
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

/** Without surrounding quotation marks. */
function unquoted(token: string): string {
  return token.replace(/^"([\s\S]*)"$/, '$1')
}

/** Completes a line: commands, argument names, or values that the server suggests. */
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

/** The error for an unknown prompt. */
function unknown(command: string, offered: readonly OfferedPrompt[]) {
  const names = offered.slice(0, 12).map(one => `/${one.command}`)
  const known = names.length > 0 ? `Available: ${names.join(', ')}` : 'No server offers prompts'
  const suggestion = `${known}. To send a message that begins with a slash, write //`
  return problem('INVALID_INPUT', `There is no prompt /${clip(command)}`, { suggestion })
}
