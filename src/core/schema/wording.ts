/** Turns what the compiled validator reports into issues that name the field and say what would be right. */
import { type Issue, makeIssue, maxIssues, pointerSegments } from './issue.ts'

/** One failure as the validator reports it. */
export interface Failure {
  readonly keyword: string
  readonly instancePath: string
  readonly schemaPath: string
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string | undefined
}

/** Unions within unions report in great numbers; more than this are not looked at. */
const maxFailures = 100

export function wordFailures(failures: readonly Failure[]): Issue[] {
  const issues: Issue[] = []
  for (const failure of withoutBranches(failures.slice(0, maxFailures))) {
    const segments = pointerSegments(failure.instancePath)
    const named = memberOf(failure)
    issues.push(makeIssue(named === undefined ? segments : [...segments, named], wording(failure)))
    if (issues.length === maxIssues) break
  }
  return issues
}

/** Failures about a member point at its parent; the member is what has to be named. */
function memberOf({ params }: Failure): string | undefined {
  const name = params.missingProperty ?? params.additionalProperty ?? params.unevaluatedProperty
  return typeof name === 'string' ? name : undefined
}

function wording({ keyword, params, message }: Failure): string {
  switch (keyword) {
    case 'type':
      return `must be ${Array.isArray(params.type) ? params.type.join(' or ') : String(params.type)}`
    case 'required':
      return 'is required'
    case 'dependentRequired':
      return `is required together with ${String(params.property)}`
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return 'is not known here; remove it'
    case 'enum':
      return `must be one of ${Array.isArray(params.allowedValues) ? params.allowedValues.map(json).join(', ') : '…'}`
    case 'const':
      return `must be ${json(params.allowedValue)}`
    case 'minLength':
      return `must have at least ${String(params.limit)} characters`
    case 'maxLength':
      return `must have at most ${String(params.limit)} characters`
    case 'minItems':
      return `must have at least ${String(params.limit)} items`
    case 'maxItems':
      return `must have at most ${String(params.limit)} items`
    case 'items':
    case 'additionalItems':
      return params.limit === undefined ? (message ?? keyword) : `must have at most ${String(params.limit)} items`
    case 'uniqueItems':
      return 'must not hold the same item twice'
    case 'pattern':
      return `must match the pattern ${String(params.pattern)}`
    case 'anyOf':
      return 'must match one of the allowed forms'
    case 'oneOf':
      return Array.isArray(params.passingSchemas)
        ? 'must match only one of the allowed forms'
        : 'must match one of the allowed forms'
    case 'not':
      return 'has a form that is not allowed'
    case 'false schema':
      return 'is not allowed here'
    default:
      return message ?? `breaks the rule ${keyword}`
  }
}

function json(value: unknown): string {
  return JSON.stringify(value) ?? String(value)
}

/** Of the failures of all branches of a union only those of the branch that came nearest help anyone. */
function withoutBranches(failures: readonly Failure[]): Failure[] {
  let kept = failures.filter(({ keyword }) => keyword !== 'if')
  for (const union of failures) {
    if (union.keyword !== 'anyOf' && union.keyword !== 'oneOf') continue
    const inside = (failure: Failure) => failure.schemaPath.startsWith(`${union.schemaPath}/`)
    const branches = kept.filter(inside)
    if (branches.length === 0) continue
    const instead = Array.isArray(union.params.passingSchemas) ? [union] : nearest(union, branches)
    kept = kept.flatMap(failure => (failure === union ? instead : inside(failure) ? [] : [failure]))
  }
  return kept
}

function nearest(union: Failure, failures: readonly Failure[]): readonly Failure[] {
  if (failures.every(({ keyword, instancePath }) => keyword === 'type' && instancePath === union.instancePath)) {
    return [{ ...union, keyword: 'type', params: { type: failures.flatMap(({ params }) => params.type) } }]
  }
  const byBranch = Map.groupBy(failures, ({ schemaPath }) => schemaPath.slice(union.schemaPath.length + 1).split('/', 1)[0])
  return [...byBranch.values()].reduce((best, branch) => (branch.length < best.length ? branch : best))
}
