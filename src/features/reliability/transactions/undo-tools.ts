/**
 * The tools that `undo` names: whether they exist is known only when all tools are registered, so it is looked at when the server begins
 * to serve, and after that with each new tool. A missing one is reported once; calls in transactions refuse to run without it.
 */
import { meantText } from '../../../core/suggestion.ts'
import type { ServerKit } from '../../../engine/server-feature.ts'
import { toolsPort } from '../../mcp/tools/messages.ts'

/** Reports tools that are undone by a tool that does not exist. */
export class UndoTools {
  readonly #kit: Pick<ServerKit, 'log' | 'port'>
  /** The tool that undoes, by the tool that is undone. Those that were looked at are gone from here. */
  readonly #named = new Map<string, string>()
  #serves = false

  constructor(kit: Pick<ServerKit, 'log' | 'port'>) {
    this.#kit = kit
  }

  /** A tool with `undo` was registered. */
  named(tool: string, undoneBy: string): void {
    this.#named.set(tool, undoneBy)
    // A program may register both tools one after the other.
    if (this.#serves) queueMicrotask(() => this.check())
  }

  /** Looks at those that were registered since the last time. */
  check(): void {
    this.#serves = true
    const { catalog } = this.#kit.port(toolsPort)
    const names = catalog.snapshot.entries.map(({ name }) => name)
    for (const [tool, undoneBy] of this.#named) {
      if (names.includes(undoneBy) || !names.includes(tool)) continue
      this.#kit.log.error('undo-tool-missing', {
        message: `The undo of tool "${tool}" names the tool "${undoneBy}", which the server does not have. Calls of it in a transaction are refused`,
        fix: meantText(undoneBy, names) ?? 'Register that tool before the server serves, or correct undo.tool',
      })
    }
    this.#named.clear()
  }
}
