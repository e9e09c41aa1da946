/** The model that the environment names, so that a host runs wherever it is started. */
import { anthropic } from './anthropic.ts'
import type { Model } from './model.ts'
import { offline } from './offline.ts'
import { openai } from './openai.ts'

/** Anthropic with ANTHROPIC_API_KEY, OpenAI or a server like it with OPENAI_API_KEY or OPENAI_BASE_URL, else the offline assistant. */
export function modelFromEnvironment(env: Readonly<Record<string, string | undefined>> = process.env): Model {
  const told = (name: string): string | undefined => (env[name] === '' ? undefined : env[name])
  const key = told('ANTHROPIC_API_KEY')
  if (key !== undefined)
    return anthropic({ apiKey: key, ...given('model', told('ANTHROPIC_MODEL')), ...given('baseURL', told('ANTHROPIC_BASE_URL')) })
  const [other, baseURL] = [told('OPENAI_API_KEY'), told('OPENAI_BASE_URL')]
  if (other === undefined && baseURL === undefined) return offline()
  return openai({ ...given('apiKey', other), ...given('baseURL', baseURL), ...given('model', told('OPENAI_MODEL')) })
}

function given<K extends string>(name: K, value: string | undefined): { readonly [P in K]?: string } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [P in K]?: string }
}
