/**
 * Holding callers to the scopes of what they call. A refusal is a step-up: over HTTP a 403 whose challenge names the scopes to get
 * (2025-11-25 basic/authorization, "Scope Challenge Handling"), elsewhere an error with the same scopes in its data.
 */
import { checkNeeds } from '../../../core/scope.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import { defineServerFeature, provide } from '../../../engine/server-feature.ts'
import type { Layer } from '../../../engine/stages.ts'
import { promptsPort } from '../prompts/messages.ts'
import { resourcesPort } from '../resources/messages.ts'
import { type ToolFacts, toolsPort } from '../tools/messages.ts'
import {
  aimingMethods,
  aimOf,
  authorizationPort,
  type GrantedRights,
  insufficient,
  permits,
  type RequestTarget,
  type Scopes,
} from './messages.ts'

interface AuthorizationServer {
  readonly side: Side
  /** Whether anything is. */
  readonly declared: boolean
  /** Something with these scopes is offered. */
  declare(scopes: Scopes, what: string): void
}

interface AuthorizationOptions {
  /** The scopes of what a request aims at. */
  readonly needs: (aim: RequestTarget) => Scopes
  /** Whether more than the token has a say in a request: then it is decided there. */
  readonly elsewhere: (exchange: Exchange) => boolean
  /** Called when scopes are first declared: until then no call is looked at. */
  readonly began: () => void
}

/** Scopes of tools, prompts and resources. */
export const authorizationFeature = defineServerFeature<object>({
  name: 'authorization',
  setup(kit) {
    const [tools, prompts, resources] = [kit.port(toolsPort), kit.port(promptsPort), kit.port(resourcesPort)]
    let rights: GrantedRights | undefined
    const needs = ([kind, name]: RequestTarget): Scopes => {
      if (kind === 'tool') return tools.facts(name)?.scopes
      if (kind === 'prompt') return prompts.scopes(name)
      // Suggestions may tell as much as what they are for.
      return kind === 'template' ? resources.templates.get(name)?.scopes : resources.scopes(name)
    }
    const server = authorizationServer({ needs, began: kit.began, elsewhere: exchange => rights?.decides(exchange) === true })
    tools.extend<ToolFacts>({ declare: (_, { scopes }) => server.declare(scopes, 'a tool') })
    return {
      sides: [server.side],
      provides: provide(authorizationPort, {
        get declared() {
          return server.declared
        },
        declare: server.declare,
        needs,
        grantsBy: given => {
          rights = given
        },
        get rights() {
          return rights
        },
      }),
    }
  },
})

function authorizationServer({ needs, began, elsewhere }: AuthorizationOptions): AuthorizationServer {
  let declared = false
  const needed = (exchange: Exchange): Scopes => {
    const aim = aimOf(exchange)
    return aim === undefined ? undefined : needs(aim)
  }
  const aimed = (exchange: Exchange): boolean => needed(exchange) !== undefined
  const layer: Layer = {
    stage: 'decide',
    methods: aimingMethods,
    concerns: aimed,
    // Cheap where nothing has scopes: every request is asked.
    when: exchange => declared && aimed(exchange) && !elsewhere(exchange),
    run: (exchange, next) => {
      const scopes = needed(exchange)
      if (!permits(exchange.caller, scopes)) throw insufficient(scopes ?? [], exchange.caller)
      return next()
    },
  }
  return {
    get declared() {
      return declared
    },
    declare: (scopes, what) => {
      if (scopes === undefined) return
      checkNeeds(scopes, `The scopes of ${what}`)
      if (declared) return
      declared = true
      began()
    },
    side: {
      // Always there: a request may have been on its way, by the plan of then, before the first scopes were declared.
      layers: [layer],
    },
  }
}
