/** Which of the host's models answers a server: by the hints that it gives, then by what it holds important. */
import type { SamplingParams } from '../../../features/mcp/sampling/messages.ts'
import type { Model } from '../../models/model.ts'

type Models = readonly [Model, ...Model[]]

/** Hints are parts of names, the first that fits wins; priorities weigh what is known of each model. */
export function chooseModel(models: Models, preferences: SamplingParams['modelPreferences'] = {}): Model {
  for (const { name } of preferences.hints ?? []) {
    const wanted = typeof name === 'string' ? name.toLowerCase() : ''
    const found =
      wanted === '' ? undefined : models.find(({ info }) => `${info.vendor}/${info.id}`.toLowerCase().includes(wanted))
    if (found !== undefined) return found
  }
  const { costPriority = 0, speedPriority = 0, intelligencePriority = 0 } = preferences
  if (costPriority === 0 && speedPriority === 0 && intelligencePriority === 0) return models[0]
  const score = ({ traits = {} }: Model): number =>
    costPriority * (traits.cost ?? 0.5) +
    speedPriority * (traits.speed ?? 0.5) +
    intelligencePriority * (traits.intelligence ?? 0.5)
  return models.reduce((best, model) => (score(model) > score(best) ? model : best), models[0])
}

/** By name; the first model where there is no such one. */
export function modelNamed(models: Models, id: string | undefined): Model {
  return models.find(({ info }) => info.id === id) ?? models[0]
}
