/**
 * Questions to the user: may a server do this, what does it want to know, may it use the model. Where nobody sits before the
 * terminal the answer is no, and a line says so; nothing ever waits for a pipe.
 */
import type { ElicitResult } from '../../features/mcp/elicitation/messages.ts'
import type { OnServerQuestion, ServerQuestion } from '../../host/loop/answers/elicitation.ts'
import type { OnSampleReview } from '../../host/loop/answers/sampling.ts'
import type { ApprovalAnswer, ApprovalQuestion, OnApproval } from '../../host/policy/question.ts'
import { fillForm } from './form.ts'
import { brief } from './paint.ts'
import type { Reader } from './reader.ts'
import type { Screen } from './screen.ts'

export interface Questions {
  readonly onApproval: OnApproval
  readonly onElicit: OnServerQuestion
  readonly onSampleReview: OnSampleReview
  readonly confirm: Confirm
  /** What was refused since the start, the latest first. */
  readonly refused: readonly ApprovalQuestion[]
  /** The next time that exactly this is asked, the answer is yes. */
  allow(question: ApprovalQuestion): void
}

/** A plain question, asked below some lines. Undefined: there is nobody to ask. */
export type Confirm = (text: string, lines: readonly string[]) => Promise<boolean | undefined>

/** Refusals that are remembered. */
const most = 20
const payloadLength = 1_500

export function createQuestions(screen: Screen, reader: Reader): Questions {
  const refused: ApprovalQuestion[] = []
  const allowed = new Set<string>()
  const refuse = (question: ApprovalQuestion): void => {
    const same = refused.findIndex(({ digest }) => digest === question.digest)
    if (same !== -1) refused.splice(same, 1)
    refused.unshift(question)
    refused.splice(most)
  }
  return {
    refused,
    allow: question => {
      allowed.add(question.digest)
      refused.splice(refused.indexOf(question), 1)
    },
    onApproval: async (question, { signal }) => {
      if (allowed.delete(question.digest)) {
        screen.line(` ${screen.paint.good('✓')} ${screen.paint.plain(question.text)} Yes: you said /allow.`)
        return { yes: true, for: 0 }
      }
      const answer = await approval(screen, reader, question, signal)
      if (!(typeof answer === 'boolean' ? answer : answer.yes)) refuse(question)
      return answer
    },
    confirm: (text, lines) => confirm(screen, reader, text, lines),
    onElicit: (question, { signal }) => elicitation(screen, reader, question, signal),
    onSampleReview: (review, { signal }) => sampling(screen, reader, review, signal),
  }
}

async function approval(
  screen: Screen,
  reader: Reader,
  question: ApprovalQuestion,
  signal: AbortSignal,
): Promise<ApprovalAnswer> {
  const { paint } = screen
  screen.line(` ${paint.warn('?')} ${paint.bold(question.text)}`)
  for (const { label, payload } of question.scopes) {
    const whole = payload === undefined ? '' : JSON.stringify(payload)
    // The sentence shows only the beginning of what is long.
    if (question.text.includes(label) && question.text.includes(whole)) continue
    screen.line(`   ${paint.dim('on')} ${paint.plain(brief(label, 400))} ${paint.dim(brief(whole, payloadLength))}`)
  }
  if (question.flaw !== undefined) screen.line(`   ${paint.warn(`Careful: ${question.flaw}`)}`)
  if (!reader.interactive) {
    screen.line(`   ${paint.bad('Refused')}: there is nobody to ask without a terminal. /allow lets it through the next time.`)
    return { yes: false, reason: 'There was nobody to ask: the host runs without a terminal' }
  }
  const said = await yesOrNo(screen, reader, '   [y]es, and for a while · [o]nly this once · [N]o › ', signal)
  if (said === 'o') return { yes: true, for: 0 }
  if (said === 'y') return true
  screen.line(`   ${paint.bad('Refused.')} ${paint.dim('/allow lets it through the next time')}`)
  return false
}

async function confirm(screen: Screen, reader: Reader, text: string, lines: readonly string[]): Promise<boolean | undefined> {
  if (!reader.interactive) return undefined
  const { paint } = screen
  screen.line(` ${paint.warn('?')} ${paint.bold(text)}`)
  for (const line of lines) screen.line(`   ${paint.plain(line)}`)
  return (await yesOrNo(screen, reader, '   [y]es · [N]o › ', new AbortController().signal)) === 'y'
}

async function elicitation(screen: Screen, reader: Reader, question: ServerQuestion, signal: AbortSignal): Promise<ElicitResult> {
  const { paint } = screen
  screen.line(` ${paint.warn('?')} ${paint.name(question.server)} ${paint.dim('asks:')} ${paint.bold(question.message)}`)
  if (question.mode === 'url') {
    screen.line(`   ${paint.plain(question.url)}`)
    screen.line(`   ${paint.dim('It leads to')} ${paint.warn(question.domain ?? '')}`)
  }
  if (!reader.interactive) {
    screen.line(`   ${paint.bad('Declined')}: there is nobody to ask without a terminal.`)
    return { action: 'decline' }
  }
  if (question.mode === 'form') return fillForm(screen, reader, question.schema, signal)
  const said = await yesOrNo(screen, reader, '   Have you opened it? [y]es · [N]o › ', signal)
  return { action: said === 'y' ? 'accept' : 'decline' }
}

async function sampling(
  screen: Screen,
  reader: Reader,
  review: Parameters<OnSampleReview>[0],
  signal: AbortSignal,
): Promise<{ readonly yes: boolean }> {
  const { paint } = screen
  const shown = review.stage === 'prompt' ? review.params.messages : review.result
  const wish = review.stage === 'prompt' ? `wants ${review.model} to answer` : 'would get this answer'
  screen.line(` ${paint.warn('?')} ${paint.name(review.server)} ${paint.bold(wish)}`)
  screen.line(`   ${paint.dim(brief(JSON.stringify(shown), payloadLength))}`)
  if (!reader.interactive) {
    screen.line(`   ${paint.bad('Refused')}: there is nobody to ask without a terminal.`)
    return { yes: false }
  }
  return { yes: (await yesOrNo(screen, reader, '   [y]es · [N]o › ', signal)) === 'y' }
}

/** The first letter; what is neither yes nor once is no. */
async function yesOrNo(screen: Screen, reader: Reader, prompt: string, signal: AbortSignal): Promise<'y' | 'o' | 'n'> {
  const said = (await reader.ask(prompt, signal))?.trim().toLowerCase()
  if (said === undefined && signal.aborted) screen.line(`   ${screen.paint.dim('Nobody waits for the answer any more.')}`)
  if (said === 'y' || said === 'yes') return 'y'
  return said === 'o' || said === 'once' ? 'o' : 'n'
}
