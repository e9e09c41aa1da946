/** Wire message for asking which model the host runs (MCP Live 0.2 §12). */
import { request, sessionRevisionIds } from '../../../engine/method.ts'
import { array, integer, object, string } from '../../../jsonrpc/shape.ts'

/** The model that the host runs. */
export interface ModelInfo {
  /** The id of the model at its provider. */
  readonly id: string
  /** The provider of the model. */
  readonly vendor: string
  /** The size of the context window, in tokens. */
  readonly contextWindow: number
  /** What the model can do, for example `tools` or `vision`. */
  readonly capabilities: readonly string[]
}

/** The shape of the answer. */
export const modelInfoShape = object({ id: string, vendor: string, contextWindow: integer, capabilities: array(string) })

/** Asks the host which model it runs. */
export const modelInfo = request<ModelInfo>()({ name: 'model/info', to: 'client', in: sessionRevisionIds, params: object({}) })
