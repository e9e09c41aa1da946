/** Saying which model runs (MCP Live 0.2 §12): always answered, whatever was selected. */
import type { Answerer } from '../answers/messages.ts'
import { type ModelInfo, modelInfo } from './messages.ts'

export function modelAnswerers(current: () => ModelInfo): readonly Answerer[] {
  return [
    {
      method: modelInfo,
      waits: false,
      answer: () => {
        const { id, vendor, contextWindow, capabilities } = current()
        return { id, vendor, contextWindow, capabilities }
      },
    },
  ]
}
