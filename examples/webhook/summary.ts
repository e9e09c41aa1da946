/** A webhook in a few words, and where it comes from. What it says is somebody else's text: short here, and whole only where it is asked for. */
import type { Source } from './signatures.ts'

export interface Summary {
  /** What has one origin stays in order. */
  readonly origin: Record<string, string>
  readonly text: string
}

/** Where the words are in what each of them sends. */
const members: Readonly<Record<Source, { readonly from: string; readonly words: readonly string[] }>> = {
  github: {
    from: 'repository.full_name',
    words: [
      'action',
      'ref',
      'sender.login',
      'pull_request.title',
      'issue.title',
      'head_commit.message',
      'workflow_run.conclusion',
    ],
  },
  gitlab: {
    from: 'project.path_with_namespace',
    words: ['object_kind', 'ref', 'user_name', 'user.name', 'object_attributes.title', 'object_attributes.status'],
  },
  stripe: { from: 'account', words: ['data.object.object', 'data.object.id', 'data.object.status', 'data.object.amount'] },
}

export function summarise(source: Source, event: string, body: unknown): Summary {
  const { from, words } = members[source]
  const place = at(body, from)
  const said = words.flatMap(path => {
    const value = at(body, path)
    return value === undefined ? [] : [`${path}: ${value}`]
  })
  return {
    origin: { source, ...(place !== undefined && { place }) },
    text: [`${source} says ${event}${place === undefined ? '' : ` of ${place}`}`, ...said].join('\n'),
  }
}

function at(body: unknown, path: string): string | undefined {
  let value = body
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const text = String(value).replace(/\s+/g, ' ').trim()
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
