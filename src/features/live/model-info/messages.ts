/** Which model the host runs (MCP Live 0.2 §12). */
import { request, sessionIds } from '../../../engine/method.ts'
import { array, integer, object, string } from '../../../jsonrpc/shape.ts'

/** The model that the host runs. */
export interface ModelInfo {
  readonly id: string
  readonly vendor: string
  readonly contextWindow: number
  readonly capabilities: readonly string[]
}

/** A model, as it comes on the wire. */
export const modelInfoShape = object({ id: string, vendor: string, contextWindow: integer, capabilities: array(string) })

/** Asks the host which model runs. */
export const modelInfo = request<ModelInfo>()({ name: 'model/info', to: 'client', in: sessionIds, params: object({}) })
