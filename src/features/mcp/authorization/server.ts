/**
 * Holding callers to the scopes of what they call. A refusal is a step-up: over HTTP a 403 whose challenge names the scopes to get
 * (2025-11-25 basic/authorization, "Scope Challenge Handling"), elsewhere an error with the same scopes in its data.
 */
import { checkScopes } from '../../../core/scope.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Layer } from '../../../engine/stages.ts'
import type { Caller } from '../../../jsonrpc/connection.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { permits, type Scopes } from './messages.ts'

export interface AuthorizationServer {
  readonly side: Side
  /** Something with these scopes is offered. */
  declare(scopes: Scopes, what: string): void
}

export interface AuthorizationOptions {
  /** By method: the scopes of what a request aims at. */
  readonly needs: Readonly<Record<string, (params: Params) => Scopes>>
  /** Called when scopes are first declared: until then no call is looked at. */
  readonly began: () => void
}

export function authorizationServer({ needs, began }: AuthorizationOptions): AuthorizationServer {
  let declared = false
  const table = new Map(Object.entries(needs))
  const layer: Layer = {
    stage: 'decide',
    methods: [...table.keys()],
    when: ({ route, params }) => table.get(route.method.name)?.(params) !== undefined,
    run: ({ route, params, caller }, next) => {
      const needed = table.get(route.method.name)?.(params)
      if (!permits(caller, needed)) throw lacking(needed ?? [], caller)
      return next()
    },
  }
  return {
    declare: (scopes, what) => {
      if (scopes === undefined) return
      checkScopes(scopes, `The scopes of ${what}`)
      if (declared) return
      declared = true
      began()
    },
    side: {
      get layers() {
        return declared ? [layer] : []
      },
    },
  }
}

function lacking(scopes: readonly string[], { principal }: Caller): McpError {
  const remedy =
    principal === undefined
      ? 'this server was opened without authorization: serve it with auth: oauth({ … })'
      : 'ask the authorization server for a token that has them'
  return new McpError('insufficient-scope', `This needs the scopes ${scopes.join(' ')}; ${remedy}`, { data: { scopes } })
}
