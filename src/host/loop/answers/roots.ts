/** The folders that servers may know of: told only to those that the policy, or the user, lets know; changes are announced to all. */
import type { Root } from '../../../features/mcp/roots/messages.ts'
import type { LoopParts } from '../loop-parts.ts'
import { permission } from '../permit.ts'
import { noted } from './refuse.ts'

export interface RootsBook {
  /** For one server; nothing where it may not know. */
  rootsFor(server: string): () => Promise<readonly Root[]>
  /** Replaces them, and tells every server that is up. */
  set(roots: readonly Root[]): void
}

export function rootsBook(parts: LoopParts, first: readonly Root[]): RootsBook {
  let roots = first
  return {
    rootsFor: server => async () => {
      const told = noted(parts, { server, kind: 'roots', began: parts.clock.now() })
      // Others may be set while somebody is asked: the answer is about these.
      const asked = roots
      // That there are none is no secret.
      if (asked.length === 0) {
        told('success', undefined, 'roots: none are set')
        return []
      }
      const { why: said, rule } = await permission(parts.policy, { kind: 'roots', server, payload: { roots: asked } })
      told(said === undefined ? 'success' : 'refused', said, rule)
      return said === undefined ? asked : []
    },
    set: next => {
      roots = next
      for (const { client } of parts.servers()) client?.rootsChanged()
    },
  }
}
