/** Finding tools by what a server says of them. */
import { NS } from '../engine/method.ts'
import { isRecord } from '../jsonrpc/message.ts'
import { brings, hintKey, isPlain, saidOf } from './said.ts'
import { sampleArguments } from './sample.ts'
import type { Advertised, Json } from './scenario.ts'

/** A tool that suits a scenario, and arguments that it takes. */
export interface FoundTool {
  readonly name: string
  readonly listed: Json
  readonly args: Json
  /** What it says under an extension. */
  said(extension: string): Json
}

/** How a scenario finds its tool, and what it is missing without it. */
export interface Finder {
  /** Completes: `No tool is listed that …`. */
  readonly that: string
  find(peer: Advertised): FoundTool | undefined
}

/** A listed tool with arguments for it; undefined where none can be made. */
export function foundTool(tool: Json, args?: Json): FoundTool | undefined {
  const name = tool['name']
  const made = args ?? sampleArguments(tool)
  if (typeof name !== 'string' || made === undefined) return undefined
  return { name, listed: tool, args: made, said: extension => saidOf(tool, extension) }
}

/** The first listed tool that fits and whose arguments can be made. */
export function toolThat(that: string, fits: (tool: Json, peer: Advertised) => boolean): Finder {
  return {
    that,
    find: peer => {
      for (const tool of peer.tools) {
        const found = fits(tool, peer) ? foundTool(tool) : undefined
        if (found !== undefined) return found
      }
      return undefined
    },
  }
}

/** By the author's word. */
export function bringing(what: string, that = `declares "${what}" in _meta["${hintKey}"].brings`): Finder {
  return toolThat(that, tool => brings(tool, what))
}

/** The first that finds something. */
export function either(first: Finder, second: Finder): Finder {
  return { that: second.that, find: peer => first.find(peer) ?? second.find(peer) }
}

/** Each run gives another answer, so that it shows whether a call was made. */
export const counting = toolThat(
  'returns a different result each time ("counts")',
  tool =>
    isPlain(tool) && brings(tool, 'counts') && !brings(tool, 'slow') && saidOf(tool, 'streaming')['supports_streaming'] !== true,
)

/** Any tool that can simply be called. */
export const callable = either(
  counting,
  toolThat(
    'can be called without confirmation and without scopes',
    (tool, peer) => isPlain(tool) && peer.mayCall(String(tool['name'])),
  ),
)

/** A tool whose calls can be taken back. */
export const undoable = toolThat(
  `names a compensation in _meta["${NS}/transactions"]`,
  tool => isPlain(tool) && isRecord(saidOf(tool, 'transactions')['compensation']) && !brings(tool, 'slow'),
)
