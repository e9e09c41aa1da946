/** What scenarios of extensions and of MCP Live share: another try where cells meet, and the tools that they were promised. */
import { setTimeout as wait } from 'node:timers/promises'
import { type Advertised, Failed } from '../scenario.ts'
import type { Finder, FoundTool } from '../tools.ts'

type Finders<T extends string> = Readonly<Record<T, Finder>> | undefined

/** Cells are judged side by side: what fails where they see the same thing may do so `tries` times before it counts. */
export async function attempted(tries: number, run: () => Promise<void>): Promise<void> {
  for (let left = tries; ; left--) {
    try {
      return await run()
    } catch (error) {
      if (left <= 1 || !(error instanceof Failed)) throw error
    }
    // Those that have met would meet again at the same place.
    await wait(Math.random() * 1_000)
  }
}

/** Why a scenario has to be left out: no tool is listed that it needs. */
export function lacking<T extends string>(peer: Advertised, finders: Finders<T>): string | undefined {
  const absent = Object.values<Finder>(finders ?? {}).find(finder => finder.find(peer) === undefined)
  return absent === undefined ? undefined : `No tool is listed that ${absent.that}`
}

/** The tools of which `lacking` found none to be absent. */
export function found<T extends string>(peer: Advertised, finders: Finders<T>): Record<T, FoundTool> {
  const tools: Partial<Record<T, FoundTool>> = {}
  for (const [name, finder] of Object.entries<Finder>(finders ?? {})) {
    const tool = finder.find(peer)
    if (tool !== undefined) tools[name as T] = tool
  }
  return tools as Record<T, FoundTool>
}
