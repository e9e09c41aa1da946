/** Requests to the process. Types and addresses are those of the contract; a failure is thrown as `ProblemError`. */
import type { ConsoleApi, ConsoleProblem } from '#contract'

/** A request that failed, with what the process says about it. */
export class ProblemError extends Error {
  readonly problem: ConsoleProblem
  readonly status: number

  constructor(problem: ConsoleProblem, status: number) {
    super(problem.message)
    this.problem = problem
    this.status = status
  }
}

type Routes = keyof ConsoleApi
type Part<Route extends Routes, Name extends string> = ConsoleApi[Route] extends { readonly [K in Name]: infer T extends object }
  ? T
  : never

/** What a request takes: names in its path, its query and its body. */
export interface RequestParts<Route extends Routes> {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Part<Route, 'query'>
  readonly body?: Part<Route, 'body'>
  readonly signal?: AbortSignal | undefined
}

const base = '/api/1'

/** Calls a route, for example `request('GET /servers')`. */
export async function request<Route extends Routes>(
  route: Route,
  { path = {}, query, body, signal }: RequestParts<Route> = {},
): Promise<ConsoleApi[Route]['answer']> {
  const [method = 'GET', pattern = ''] = route.split(' ')
  const address = pattern.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(path[name] ?? ''))
  const response = await fetch(`${base}${address}${search(query as object | undefined)}`, {
    method,
    credentials: 'same-origin',
    ...(signal && { signal }),
    ...(method !== 'GET' && {
      headers: { 'content-type': 'application/json', 'x-vivarium': '1' },
      body: JSON.stringify(body ?? {}),
    }),
  }).catch((cause: unknown) => {
    if (signal?.aborted) throw cause
    throw new ProblemError(unreachable, 0)
  })
  if (!response.ok) throw new ProblemError(await problemOf(response), response.status)
  if (response.status === 204) return undefined
  return (await response.json()) as ConsoleApi[Route]['answer']
}

const unreachable: ConsoleProblem = {
  code: 'UNAVAILABLE',
  message: 'The process does not respond.',
  fix: 'Check that it is still running. The page reconnects automatically.',
}

async function problemOf(response: Response): Promise<ConsoleProblem> {
  const parsed: unknown = await response.json().catch(() => undefined)
  if (typeof parsed === 'object' && parsed !== null && 'code' in parsed) return parsed as ConsoleProblem
  return { code: 'INTERNAL', message: `The process answered with HTTP status ${response.status}.`, fix: 'Reload the page.' }
}

function search(query: object | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '')
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return text === '' ? '' : `?${text}`
}

/** What went wrong, for the page: also for failures that are not of the process. */
export function asProblem(error: unknown): ConsoleProblem {
  if (error instanceof ProblemError) return error.problem
  const message = error instanceof Error ? error.message : String(error)
  return { code: 'INTERNAL', message, fix: 'Reload the page.' }
}
