"""Bills the rows of a file through Purser's workers: python3 producer.py FILE [ENDPOINT]   (needs pyzmq)

The status is 0 when every row is paid, and 2 when some are not; run it again as often as you like.
"""
import csv
import sys
from decimal import Decimal

import purser_client

# Currencies whose minor unit is not a hundredth; docs/input-files.md has more.
DIGITS = {"jpy": 0, "krw": 0, "bhd": 3, "kwd": 3}


def minor(amount, currency):
    """Digit by digit: an amount is never a float, and never rounded."""
    value = Decimal(amount).scaleb(DIGITS.get(currency, 2))
    if value != int(value):
        raise ValueError(f"{amount} {currency} has too many digits")
    return int(value)


def bodies_of(file):
    with open(file, newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines), 1):
            yield f"row-{number}", {
                "customer_id": row["customer_id"], "billing_period": row["billing_period"], "item": row["item"] or None,
                "amount_minor": minor(row["amount"], row["currency"].lower()), "currency": row["currency"].lower(),
                "stripe_customer_id": row["stripe_customer_id"], "payment_method": row["payment_method"] or None,
            }


def main(file, endpoint="tcp://127.0.0.1:5555", batch=16, **options):
    rows, paid = list(bodies_of(file)), 0
    for start in range(0, len(rows), batch):
        bodies = dict(rows[start:start + batch])
        answers = purser_client.charge(endpoint, bodies, **options)
        for name, body in bodies.items():
            fact = answers.get(name, {"_tag": "Unknown"})
            paid += fact["_tag"] == "Succeeded"
            why = fact.get("code") or fact.get("reason", {}).get("_tag") or ("before" if fact.get("alreadySettled") else "")
            print(body["customer_id"], body["billing_period"], fact["_tag"], why, flush=True)
    return 0 if paid == len(rows) else 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
