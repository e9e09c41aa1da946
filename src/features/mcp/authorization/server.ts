/**
 * Holding callers to the scopes of what they call. A refusal is a step-up: over HTTP a 403 whose challenge names the scopes to get
 * (2025-11-25 basic/authorization, "Scope Challenge Handling"), elsewhere an error with the same scopes in its data.
 */
import { checkNeeds } from '../../../core/scope.ts'
import type { Exchange } from '../../../engine/exchange.ts'
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
    const needed = (exchange: Exchange): Scopes => {
      const aim = aimOf(exchange)
      return aim && needs(aim)
    }
    const aimed = (exchange: Exchange): boolean => needed(exchange) !== undefined
    let declared = false
    const declare = (scopes: Scopes, what: string): void => {
      if (scopes === undefined) return
      checkNeeds(scopes, `The scopes of ${what}`)
      if (declared) return
      declared = true
      // Until then no call was looked at.
      kit.began()
    }
    const layer: Layer = {
      stage: 'decide',
      methods: aimingMethods,
      concerns: aimed,
      // Cheap where nothing has scopes: every request is asked. Where more than the token has a say, it is decided there.
      when: exchange => declared && aimed(exchange) && rights?.decides(exchange) !== true,
      run: (exchange, next) => {
        const scopes = needed(exchange)
        if (!permits(exchange.caller, scopes)) throw insufficient(scopes ?? [], exchange.caller)
        return next()
      },
    }
    tools.extend<ToolFacts>({ declare: (_, { scopes }) => declare(scopes, 'a tool') })
    return {
      // Always there: a request may have been on its way, by the plan of then, before the first scopes were declared.
      sides: [{ layers: [layer] }],
      provides: provide(authorizationPort, {
        get declared() {
          return declared
        },
        declare,
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
