/** The decision itself: from the rules, what they count, and the lists of scopes. Asks nobody, changes nothing, waits for nothing. */
import { durationText } from '../core/clock.ts'
import { quoted, why } from '../core/suggestion.ts'
import type { FeatureSetFacts } from '../features/live/feature-sets/messages.ts'
import type { Scope } from '../features/live/scopes/messages.ts'
import { clip } from '../jsonrpc/limits.ts'
import { picked } from '../jsonrpc/message.ts'
import type { CompiledPolicy } from './compile.ts'
import { isAbout } from './rules/conditions.ts'
import { type Counts, countedAs } from './rules/counts.ts'
import type { ReadRule } from './rules/read.ts'
import { type Asked, begunByNames, effects, initiatingServers, type Kind } from './rules/rule.ts'
import type { Verdict } from './rules/verdict.ts'
import { strongest } from './rules/weigh.ts'
import { scopeJudge } from './scopes/lists.ts'

/** What decisions are taken from. */
export interface PolicyInputs {
  readonly compiled: CompiledPolicy
  readonly counts: Counts
  readonly now: number
  /** What a server declared; undefined where it did not. */
  facts(server: string, featureSet: string): FeatureSetFacts | undefined
  /** What of a feature set no rule can have foreseen, in words; undefined: nothing. */
  unforeseen(asked: Asked): string | undefined
  /** What a tool call acts on, read from its arguments; undefined where nobody reads them. */
  scopesOf(asked: Asked): readonly Scope[] | undefined
}

/** A verdict of the rules alone; kept answers are not looked at yet. */
type RuleVerdict = Exclude<Verdict, { do: 'ask' }> | AskVerdict

/** That somebody has to be asked, and about what. */
export interface AskVerdict {
  readonly do: 'ask'
  readonly rule: string
  /** What the question is about: of a tool call perhaps only its scope. */
  readonly about: Kind
  readonly scopes: readonly Scope[]
  /** The spelling of a scope is unusual, or a set wants more than before: then only an approval of exactly this counts. */
  readonly flaw?: string
  /** A server's event began the turn, and the tool is another's: what was allowed for a time does not count for that. */
  readonly forOthers?: true
}

/** Decides by rules, counts and scope lists. */
export function judge(world: PolicyInputs, asked: Asked): RuleVerdict {
  const rule = strongest(matchingRules(world, asked))
  const said = onBehalf(asked, rule, rule === undefined ? unruled(world, asked) : ruled(world, rule, asked))
  if (asked.kind === 'scope') return judgeScope(world, asked, said)
  if (asked.kind === 'set') return judgeSet(world, asked, said)
  return asked.kind === 'tool' && said.do !== 'deny' ? judgeTool(world, asked, said) : said
}

/**
 * An event of one server must not use the rights of another. In a turn that an event began, a tool of another server that changes
 * something is asked about, unless a rule that says `begunBy` allows it: one that does not was written with the user in mind.
 */
function onBehalf(asked: Asked, rule: ReadRule | undefined, said: RuleVerdict): RuleVerdict {
  if (asked.kind !== 'tool' || asked.readOnly === true || said.do === 'deny' || said.do === 'hold') return said
  if (!initiatingServers(asked.begunBy).some(server => server !== asked.server)) return said
  if (said.do !== 'ask' && rule?.conditions.begunBy !== undefined) return said
  return { ...asking(asked, said.do === 'ask' ? said.rule : begunByRule), forOthers: true }
}

/** The rule that such a question names. */
const begunByRule = 'begun-by'

/** The rules that are about it, now. */
export function matchingRules({ compiled, counts, now }: PolicyInputs, asked: Asked): readonly ReadRule[] {
  return compiled.rules.filter(
    read =>
      read.decides &&
      read.until > now &&
      isAbout(read.conditions, asked) &&
      (read.hours === undefined || read.hours.contains(now)) &&
      (read.above === undefined || counts.wait(read, asked) > 0) &&
      (read.running === undefined || counts.running(read) >= read.running),
  )
}

function unruled({ compiled }: PolicyInputs, asked: Asked): RuleVerdict {
  const rule = `otherwise.${asked.kind}`
  const effect = compiled.otherwise[asked.kind]
  if (effect === 'ask') return asking(asked, rule)
  if (effect === 'allow') return { do: 'allow', rule }
  return { do: 'deny', why: why('POLICY_DENIED', rule, `No rule allows ${wordsFor(asked)}`, allowFix(asked)) }
}

function ruled(world: PolicyInputs, read: ReadRule, asked: Asked): RuleVerdict {
  const { name, rule, effect, hours, forMs, withinMs } = read
  const waitMs = world.counts.wait(read, asked)
  switch (effect) {
    case 'allow':
      return { do: 'allow', rule: name }
    case 'ask':
      return asking(asked, name)
    case 'coalesce':
      return asked.kind === 'push'
        ? { do: 'coalesce', key: countedAs(rule.by ?? 'origin', asked), withinMs, rule: name }
        : { do: 'allow', rule: name }
    case 'hold': {
      const until = Math.max(hours?.endsAfter(world.now) ?? 0, world.now + Math.max(forMs ?? 0, waitMs))
      const words = wordsFor(asked)
      const message =
        rule.message ?? `${words.charAt(0).toUpperCase()}${words.slice(1)} is held until ${new Date(until).toISOString()}`
      return { do: 'hold', until, why: why('POLICY_HELD', name, message, rule.fix ?? `Wait, or change rule ${clip(name)}`) }
    }
    case 'deny':
      return denied(world, read, asked, waitMs)
  }
}

function denied({ now }: PolicyInputs, { name, rule, hours, running }: ReadRule, asked: Asked, waitMs: number): RuleVerdict {
  const waits = waitMs > 0 ? waitMs : hours === undefined ? undefined : hours.endsAfter(now) - now
  const code = waitMs > 0 ? 'RATE_LIMITED' : running === undefined ? 'POLICY_DENIED' : 'TOO_MANY_RUNNING'
  const message = rule.message ?? `Rule ${clip(name)} denies ${wordsFor(asked)}`
  const fix = rule.fix ?? (waits === undefined ? `Change rule ${clip(name)} to allow it` : `Try again in ${durationText(waits)}`)
  return { do: 'deny', why: why(code, name, message, fix), ...(waits !== undefined && { retryAfterMs: waits }) }
}

function asking(asked: Asked, rule: string): AskVerdict {
  const { kind, scope } = asked
  return { do: 'ask', rule, about: kind, scopes: scope ? [scope] : [] }
}

/** Rules name sets, and not what these declare: what is new in a declaration is asked about, whatever a rule allows. */
function judgeSet(world: PolicyInputs, asked: Asked, said: RuleVerdict): RuleVerdict {
  if (said.do !== 'allow' && said.do !== 'ask') return said
  const flaw = world.unforeseen(asked)
  return flaw === undefined ? said : { ...asking(asked, said.rule), flaw }
}
/** Where nobody wrote a list, a spelling may be unusual all the same. */
const withoutLists = scopeJudge({})

/** MCP Live 0.2 §7.6: blacklist, whitelist, and only then what the rules say. */
function judgeScope(world: PolicyInputs, asked: Asked, said: RuleVerdict): RuleVerdict {
  const { server, featureSet = '', scope } = asked
  const lists = world.compiled.scopes(server, featureSet)
  const verdict = scope === undefined ? undefined : (lists ?? withoutLists).judge(scope)
  const place = `servers.${server}.scopes.${featureSet}`
  if (verdict?.is === 'forbidden') {
    const message = `${quoted(verdict.text)} is on the blacklist of ${clip(featureSet)}`
    const fix = `Remove ${clip(verdict.pattern)} from its blacklist if ${clip(server)} may act there`
    return { do: 'deny', why: why('SCOPE_FORBIDDEN', `${place}.blacklist ${clip(verdict.pattern)}`, message, fix) }
  }
  if (said.do === 'deny' || scope === undefined) return said
  const scoped = world.facts(server, featureSet)?.scoped === true
  if (verdict?.is === 'allowed' && scoped) return { do: 'allow', rule: `${place}.whitelist ${clip(verdict.pattern)}` }
  if (said.do === 'hold') return said
  const flaw = verdict?.is === 'open' ? verdict.flaw : undefined
  if (said.do === 'allow' && scoped && flaw === undefined) return said
  const rule = said.do === 'allow' && flaw !== undefined ? `${place} (spelling)` : said.rule
  return { do: 'ask', rule, about: 'scope', scopes: [scope], ...(flaw !== undefined && { flaw }) }
}

/** A tool acts where its arguments say; in a scoped feature set that has to be approved too. */
function judgeTool(world: PolicyInputs, asked: Asked, said: RuleVerdict): RuleVerdict {
  const { server, featureSet = '', scope } = asked
  const scoped = world.facts(server, featureSet)?.scoped === true
  const scopes = world.scopesOf(asked) ?? (scope === undefined ? [] : [scope])
  if (scopes.length === 0) return scoped && said.do === 'allow' ? unknownScope(asked) : said
  const verdicts = scopes.map(each => judge(world, scopeOf(asked, each)))
  const worst = verdicts.reduce((a, b) => (effects.indexOf(b.do) < effects.indexOf(a.do) ? b : a))
  if (worst.do === 'deny') return worst
  // Where a server declares no scopes, only what is forbidden counts.
  if (!scoped) return said
  const open = verdicts.filter(verdict => verdict.do === 'ask')
  if (said.do === 'ask' && open.length > 0) return { ...said, ...openScopes(open) }
  if (effects.indexOf(said.do) <= effects.indexOf(worst.do)) return said
  return worst.do === 'ask' ? { ...worst, ...openScopes(open) } : worst
}

function openScopes(open: readonly AskVerdict[]): Pick<AskVerdict, 'scopes' | 'flaw'> {
  const flaw = open.find(each => each.flaw !== undefined)?.flaw
  return { scopes: open.flatMap(each => each.scopes), ...(flaw !== undefined && { flaw }) }
}

function scopeOf(asked: Asked, scope: Scope): Asked {
  return { kind: 'scope', scope, ...picked(asked, 'server', 'begunBy', 'featureSet', 'tags', 'origin') }
}

function unknownScope(asked: Asked): AskVerdict {
  return { ...asking(asked, 'scope-unknown'), flaw: 'the scope of the call is unknown. Add an extractor for the tool' }
}

/** What is wanted, for sentences. */
export function wordsFor({ kind, server, featureSet, tool, resource, prompt, scope }: Asked): string {
  const where = featureSet === undefined ? clip(server) : `${clip(featureSet)} of ${clip(server)}`
  if (kind === 'definition') return `the changed definition of the tool ${clip(tool ?? '')} of ${clip(server)}`
  if (kind === 'tool') return `the tool ${clip(tool ?? '')} of ${clip(server)}`
  if (kind === 'resource' || kind === 'prompt') return `the ${kind} ${clip(resource ?? prompt ?? '')} of ${clip(server)}`
  if (kind === 'scope') return `access to ${quoted(scope?.label ?? '')} for ${where}`
  return `${nouns[kind]} ${where}`
}

const nouns: Readonly<Record<Exclude<Kind, 'tool' | 'resource' | 'prompt' | 'scope'>, string>> = {
  push: 'an event from',
  infer: 'an inference for',
  sample: 'sampling for',
  elicit: 'a question from',
  roots: 'access to the roots for',
  set: 'the feature set',
  inject: 'injected context from',
  definition: 'a definition of',
}

/** What would allow it, for the `fix` of a refusal. */
export function allowFix({ kind, server, featureSet, tool, begunBy }: Asked): string {
  if (kind === 'set') return `Enable ${clip(featureSet ?? '')} for server ${clip(server)} (servers.${clip(server)}.enable)`
  const by = begunBy?.kind === 'event' && `begunBy ${clip(begunByNames(begunBy).join(' and '))}`
  const more = [featureSet && `featureSet ${clip(featureSet)}`, tool && `tool ${clip(tool)}`, by].filter(Boolean).join(', ')
  return `Add a rule that allows ${kind} for server ${clip(server)}${more === '' ? '' : ` (${more})`}`
}
