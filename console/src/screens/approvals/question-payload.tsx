/** What exactly a yes lets happen, for each kind of question. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Approval, ApprovalForm, ApprovalPage } from '#contract'
import { DiffView } from '../../parts/diff-view.tsx'
import { ForeignLink } from '../../parts/foreign-link.tsx'
import { Json } from '../../parts/json.tsx'
import { Text } from '../../parts/text.tsx'

export function QuestionPayload({ approval }: { readonly approval: Approval }): ReactNode {
  const { flaw, scopes = [], conversation } = approval
  return (
    <>
      {flaw !== undefined && (
        <p className="mt-3 rounded-lg border border-warn-line bg-warn-soft p-3 text-warn">
          <strong>Unusual:</strong> <Text most={1000}>{flaw}</Text>
        </p>
      )}
      {scopes.length > 0 && (
        <section className="mt-3">
          <h3 className="label mb-1">What it acts on</h3>
          <ul className="list-disc space-y-0.5 pl-5">
            {scopes.map(({ label }) => (
              <li key={label} className="break-all">
                <Text most={1000}>{label}</Text>
              </li>
            ))}
          </ul>
        </section>
      )}
      <Exactly approval={approval} />
      {conversation !== undefined && (
        <p className="mt-3">
          <Link to="/chat/$conversation" params={{ conversation }} className="text-accent-strong underline">
            Conversation <Text most={100}>{conversation}</Text>
          </Link>
        </p>
      )}
    </>
  )
}

function Exactly({ approval: { kind, before, after, payload, length } }: { readonly approval: Approval }): ReactNode {
  if (before !== undefined && after !== undefined) {
    return (
      <section className="mt-3">
        <h3 className="label mb-1">Definition: before and now</h3>
        <DiffView before={before} after={after} label="Definition, before and now" />
      </section>
    )
  }
  const shown = after ?? payload
  if (shown === undefined) {
    return (
      <p className="mt-3 text-muted">{`What it acts on (${length.toLocaleString('en')} characters) is not shown to your role.`}</p>
    )
  }
  if (kind === 'form') return <Form form={shown as ApprovalForm} />
  if (kind === 'page') return <Page page={shown as ApprovalPage} />
  const title = kind === 'call' ? 'Arguments' : kind === 'tool' ? 'Definition' : 'Exactly'
  return (
    <section className="mt-3">
      <h3 className="label mb-1">
        {title} <span className="font-normal">({length.toLocaleString('en')} characters)</span>
      </h3>
      <Json value={shown} label={title} />
    </section>
  )
}

/** The words of a server. */
function Message({ text }: { readonly text: string }): ReactNode {
  return (
    <blockquote className="mt-3 border-l-3 border-line-strong pl-3 break-words whitespace-pre-wrap">
      <Text most={20_000}>{text}</Text>
    </blockquote>
  )
}

function Form({ form: { message, secrets = [] } }: { readonly form: ApprovalForm }): ReactNode {
  return (
    <>
      <Message text={message} />
      {secrets.length > 0 && (
        <p className="mt-3 rounded-lg border border-warn-line bg-warn-soft p-3 text-warn">
          <strong>Do not enter secrets.</strong> The server asks for <Text most={500}>{secrets.join(', ')}</Text>, which a form
          must not do.
        </p>
      )}
    </>
  )
}

function Page({ page: { message, url, domain } }: { readonly page: ApprovalPage }): ReactNode {
  return (
    <>
      <Message text={message} />
      <p className="mt-3">
        It leads to{' '}
        <strong>
          <Text most={300}>{domain}</Text>
        </strong>
        : <ForeignLink address={url} text={url} raw={url} />
      </p>
      <p className="mt-1 text-muted">Open it first. A yes says that you have opened it.</p>
    </>
  )
}
