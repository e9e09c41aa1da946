/** Scenarios of MCP Live: run where the server declares it and has the sets and tools that they need. */
import { isRecord } from '../../jsonrpc/message.ts'
import { attempted, found, lacking } from '../extensions/attempts.ts'
import { eras } from '../extensions/scenario-of.ts'
import type { Advertised, Bench, Frame, Json, Scenario } from '../scenario.ts'
import type { Finder, FoundTool } from '../tools.ts'
import { bringing, foundTool, saidOf } from '../tools.ts'
import { declaredBy, type HostOptions, type LiveHost, openHost, setsOf } from './host.ts'

export interface LiveStage<T extends string> {
  readonly bench: Bench
  readonly host: LiveHost
  readonly declared: Json
  readonly sets: ReadonlyMap<string, Json>
  readonly tools: Readonly<Record<T, FoundTool>>
  readonly modern: boolean
  expect(condition: boolean, says: string, frames?: readonly (Frame | undefined)[]): void
  /** There is nothing to judge. */
  leave(why: string): never
}

export interface LivePart<T extends string> {
  readonly id: string
  readonly also?: readonly string[]
  readonly title: string
  readonly host?: HostOptions
  readonly tools?: Readonly<Record<T, Finder>>
  readonly needs?: (peer: Advertised) => string | undefined
  readonly writes?: boolean
  /** How often it may fail before it has: more than 1 where another host of the same server may hear what was meant for this one. */
  readonly tries?: number
  run(stage: LiveStage<T>): Promise<void>
}

export function live<const T extends string = never>(part: LivePart<T>): Scenario {
  return {
    id: `live/${part.id}`,
    proves: [part.id, ...(part.also ?? [])],
    role: 'server',
    title: part.title,
    revisions: eras,
    writes: part.writes ?? true,
    needs: peer => missing(peer, part),
    run: bench =>
      attempted(part.tries ?? 1, async () => {
        const host = await openHost(bench, part.host)
        try {
          await part.run(stageOf(bench, host, part))
        } finally {
          await host.close()
        }
      }),
  }
}

function missing<T extends string>(peer: Advertised, part: LivePart<T>): string | undefined {
  if (declaredBy(peer) === undefined) return 'The server does not declare MCP Live'
  return lacking(peer, part.tools) ?? part.needs?.(peer)
}

function stageOf<T extends string>(bench: Bench, host: LiveHost, part: LivePart<T>): LiveStage<T> {
  return {
    bench,
    host,
    declared: declaredBy(bench.peer) ?? {},
    sets: setsOf(bench.peer),
    tools: found(bench.peer, part.tools),
    modern: host.modern,
    expect: (condition, says, frames) => bench.expect(condition, says, frames),
    leave: bench.leave,
  }
}

/** A tool that says that it brings about `prefix:SET`. */
export function bringingSet(prefix: string): Finder {
  return {
    that: `says in _meta["dev.vivarium/conformance"].brings that it brings about "${prefix}:SET"`,
    find: peer => {
      for (const tool of peer.tools) {
        const found = setNamed(tool, prefix) === undefined ? undefined : foundTool(tool)
        if (found !== undefined) return found
      }
      return undefined
    },
  }
}

export function setNamed(tool: Json, prefix: string): string | undefined {
  const list = saidOf(tool, 'conformance')['brings']
  const found = Array.isArray(list) ? list.find(what => typeof what === 'string' && what.startsWith(`${prefix}:`)) : undefined
  return typeof found === 'string' ? found.slice(prefix.length + 1) : undefined
}

/** Needs a set that uses this. */
export function using(use: string): (peer: Advertised) => string | undefined {
  return peer => ([...setsOf(peer).values()].some(set => usesOf(set).includes(use)) ? undefined : `No feature set uses ${use}`)
}

export function usesOf(set: Json | undefined): readonly unknown[] {
  const uses = set?.['uses']
  return Array.isArray(uses) ? uses : []
}

export function objectIn(value: unknown, member: string): Json {
  const inner = isRecord(value) ? value[member] : undefined
  return isRecord(inner) ? inner : {}
}

export { bringing }
