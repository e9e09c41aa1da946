/**
 * Pinned tools: what a tool was when it was first seen is kept, and a definition that reads otherwise later is held back until
 * somebody approves it. A server cannot so change behind the user's back what a model is told, nor slip in a tool that only looks
 * like a known one: after the first sight of a server new tools are held too.
 */
import type { Clock } from '../../core/clock.ts'
import { digest, digestText } from '../../core/digest.ts'
import { difference } from '../../core/state/patch.ts'
import { quoted, type Why, why } from '../../core/suggestion.ts'
import type { Tool } from '../../features/mcp/tools/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type Op, put, remove, type Store } from '../../stores/store.ts'

/**
 * What happens to a definition or a command that differs from the pinned one: it is held until it is approved, a warning is
 * logged, or nothing.
 */
export type PinMode = 'block' | 'warn' | 'off'

/** A tool that is not offered, because its definition is new or has changed. */
export interface HeldTool {
  /** The server that has the tool. */
  readonly server: string
  /** The current definition. */
  readonly tool: Tool
  /** The approved definition. Absent if the tool is new. */
  readonly before?: Tool
  /** The digest of the current definition. */
  readonly digest: string
  /** The differences, one line each. */
  readonly changes: readonly string[]
  /** The question to the user. */
  readonly question: string
  /** Why the tool is held, and what to do. */
  readonly why: Why
}

/** The tools of a server, divided by whether they are the pinned ones. */
interface ToolsByPin {
  readonly offered: readonly Tool[]
  readonly held: readonly HeldTool[]
}

/** What pins need of their host. */
interface PinsOptions {
  readonly store: Store
  readonly clock: Clock
  /** What the tools of a server are that was never seen before. Default `pin`. */
  readonly first?: 'pin' | 'hold'
}

interface Pin {
  readonly digest: string
  readonly tool: Tool
}

const perCommit = 500

/** Keeps what each tool was when it was first seen, and holds back what reads otherwise later. */
export class Pins {
  readonly #options: PinsOptions

  constructor(options: PinsOptions) {
    this.#options = options
  }

  /** Which of the tools that a server lists may be offered. */
  async look(server: string, tools: readonly Tool[]): Promise<ToolsByPin> {
    const key = await keyOf(server)
    const seen = (await this.#options.store.get(seenKey(key))) !== undefined
    if (!seen && this.#options.first !== 'hold') {
      await this.#pinAll(key, tools)
      return { offered: tools, held: [] }
    }
    if (!seen) await this.#options.store.commit([put(seenKey(key), JSON.stringify({ at: this.#options.clock.now() }))])
    const offered: Tool[] = []
    const held: HeldTool[] = []
    for (const tool of tools) {
      const pin = await this.#pinOf(key, tool.name)
      const now = await digest(tool)
      if (pin?.digest === now) offered.push(tool)
      else held.push(heldTool(server, tool, pin?.tool, now))
    }
    return { offered, held }
  }

  /** From now on this definition is the one. */
  async approve(held: Pick<HeldTool, 'server' | 'tool'>): Promise<void> {
    await this.#options.store.commit([await this.approveOp(held)])
  }

  /** The step that makes this definition the one, for the commit of its approval. */
  async approveOp({ server, tool }: Pick<HeldTool, 'server' | 'tool'>): Promise<Op> {
    return this.#pinning(await keyOf(server), tool)
  }

  /** The server is as if never seen. */
  async forget(server: string): Promise<void> {
    const key = await keyOf(server)
    for (;;) {
      const page = await this.#options.store.scan(pinsOf(key), { limit: perCommit })
      await this.#options.store.commit([remove(seenKey(key)), ...page.map(entry => remove(entry.key))])
      if (page.length < perCommit) return
    }
  }

  async #pinAll(key: string, tools: readonly Tool[]): Promise<void> {
    const ops: Op[] = []
    const names = new Set<string>()
    for (const tool of tools) {
      if (!names.has(tool.name)) ops.push(await this.#pinning(key, tool))
      names.add(tool.name)
    }
    for (let at = 0; at < ops.length; at += perCommit) await this.#options.store.commit(ops.slice(at, at + perCommit))
    // Last: a crash before it means that the server was not yet seen, and all is pinned again.
    await this.#options.store.commit([put(seenKey(key), JSON.stringify({ at: this.#options.clock.now() }))])
  }

  async #pinning(key: string, tool: Tool): Promise<Op> {
    const pin: Pin = { digest: await digest(tool), tool }
    return put(await pinKey(key, tool.name), JSON.stringify(pin))
  }

  async #pinOf(key: string, name: string): Promise<Pin | undefined> {
    const entry = await this.#options.store.get(await pinKey(key, name))
    if (entry === undefined) return undefined
    const pin: unknown = JSON.parse(entry.value)
    if (isRecord(pin) && typeof pin.digest === 'string') return pin as unknown as Pin
    throw new Error('A pinned tool in the store is not valid. Another program may have written it')
  }
}

const newTool = ['TOOL_NEW', 'offers a new tool'] as const
const changedTool = ['TOOL_CHANGED', 'changed the definition of its tool'] as const

function heldTool(server: string, tool: Tool, before: Tool | undefined, now: string): HeldTool {
  const [code, what] = before === undefined ? newTool : changedTool
  const changes = before === undefined ? [`+ ${clip(JSON.stringify(tool), 400)}`] : changesOf(before, tool)
  const message = `The server ${quoted(server)} ${what} ${quoted(tool.name)}${strange(tool.name)}`
  return {
    server,
    tool,
    ...(before !== undefined && { before }),
    digest: now,
    changes,
    question: `${message}:\n${changes.join('\n')}\nDo you approve this definition?`,
    why: why(code, 'pins', `${message}, which is not approved`, 'Approve the definition, or remove the server'),
  }
}

/** Names that look like others are written out. */
function strange(name: string): string {
  if (/^[\x20-\x7e]*$/.test(name)) return ''
  const escaped = [...name].map(c => (/[\x20-\x7e]/.test(c) ? c : `\\u{${c.codePointAt(0)?.toString(16)}}`)).join('')
  return ` (contains look-alike characters: ${clip(escaped)})`
}

const mostChanges = 20

function changesOf(before: Tool, after: Tool): readonly string[] {
  const text = (value: unknown): string => clip(JSON.stringify(value) ?? '', 200)
  const lines = difference(before, after).map(step => {
    const value = 'value' in step ? text(step.value) : ''
    const old = step.op === 'replace' || step.op === 'remove' ? text(at(before, step.path)) : ''
    const arrow = old !== '' && value !== '' ? '→' : ''
    return [step.op, clip(step.path, 120), old, arrow, value].filter(part => part !== '').join(' ')
  })
  return lines.length <= mostChanges ? lines : [...lines.slice(0, mostChanges), `… and ${lines.length - mostChanges} more`]
}

/** What stood at a place of a document. */
function at(document: unknown, path: string): unknown {
  let value = document
  for (const part of path.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(value)) value = value[Number(name)]
    else if (isRecord(value) && Object.hasOwn(value, name)) value = value[name]
    else return undefined
  }
  return value
}

async function keyOf(name: string): Promise<string> {
  return (await digestText(JSON.stringify(name))).slice(0, 22)
}

function seenKey(key: string): string {
  return `pinned/${key}`
}

function pinsOf(key: string): string {
  return `pin/${key}/`
}

async function pinKey(key: string, name: string): Promise<string> {
  return `${pinsOf(key)}${await keyOf(name)}`
}
