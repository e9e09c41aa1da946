/** The client's side of prompts: listing and getting them, and hearing that the list is another one now. */
import { defineClientFeature, type RequestOptions, withArray, wrapRead } from '../../../engine/client-feature.ts'
import type { Exchange } from '../../../engine/exchange.ts'
import type { Side } from '../../../engine/plan.ts'
import type { Params } from '../../../jsonrpc/message.ts'
import { cachePort, type ListSource } from '../caching/messages.ts'
import { questionsPort } from '../input-required/messages.ts'
import { clientSubscriptionsPort } from '../subscriptions/messages.ts'
import { type GetPromptResult, getPrompt, listPrompts, type Prompt, promptsChanged } from './messages.ts'

/** The prompts of a server. */
export interface PromptsClientApi {
  /**
   * Iterates all prompts. Pages are fetched as needed, and cached as long as the server allows.
   * @example for await (const { name } of mcp.prompts()) console.log(name)
   */
  prompts(options?: RequestOptions): AsyncGenerator<Prompt, void, undefined>
  /**
   * Returns the messages of a prompt with these arguments.
   * @example const { messages } = await mcp.getPrompt('triage', { id: 'T-1' })
   */
  getPrompt(name: string, args?: Readonly<Record<string, string>>, options?: RequestOptions): Promise<GetPromptResult>
}

const promptList: ListSource = { method: listPrompts, member: 'prompts', capability: 'prompts' }

/** Lists and gets prompts. */
export const promptsClient = defineClientFeature({
  name: 'prompts',
  uses: [cachePort, questionsPort, clientSubscriptionsPort],
  options: {},
  setup(kit) {
    const get = async (name: string, args: Params | undefined, options: RequestOptions): Promise<GetPromptResult> => {
      const send = kit.send(options)
      const params = args === undefined ? { name } : { name, arguments: args }
      const again = (more?: Params): Promise<unknown> =>
        kit.session.request(getPrompt, { ...params, ...more } as { name: string }, send)
      const result = await kit.port(questionsPort).settle(await again(), again, send)
      return withArray<GetPromptResult>(result, getPrompt.name, 'messages')
    }
    const client: PromptsClientApi = {
      prompts: async function* (options) {
        yield* kit.port(cachePort).list<Prompt>(promptList, kit.send(options))
      },
      getPrompt: (name, args, options = {}) => wrapRead(kit, options, sent => get(name, args, sent)),
    }
    const changed = (): void => {
      kit.port(cachePort).drop(listPrompts.name)
      kit.port(clientSubscriptionsPort).announce('prompts')
    }
    return { client, side: promptsSide({ onListChanged: changed }) }
  },
})

/** What hears that the list of prompts changed. */
export function promptsSide({ onListChanged }: { readonly onListChanged: (exchange: Exchange) => void }): Side {
  return { handlers: [[promptsChanged, onListChanged]] }
}
