package support

var bikes = desk{
	name: "pedalgo",
	intro: "You are the support assistant of Pedalgo, a bicycle sharing service in nine towns. " +
		"Answer in at most five sentences, in the customer's language, and never promise a refund that the handbook doesn't name. " +
		"If a person is hurt or a bicycle blocks a road, give the emergency line 0800 555 0140 before anything else. " +
		"Ask for the bicycle's four-digit number when a question is about one bicycle. The handbook follows.",
	places: []string{"the harbour station", "Mill Lane", "the university library", "the north gate", "Castle Square"},
	topics: []topic{
		{
			title: "Fares and passes",
			handbook: "A single ride costs 1.20 to unlock and 0.08 a minute. The day pass at 7.50 has unlimited rides of up to 45 minutes, the month pass at 19.00 the same for 30 days from the purchase, and the year pass at 149.00 also includes cargo bicycles on weekends. " +
				"Minutes beyond 45 are charged at the single fare without a new unlocking fee. Passes start with the first ride, not with the purchase, except for the month pass. A pass belongs to one account and may unlock two bicycles at once when a child rides along.",
			asks: []string{
				"I ride to work and back, about {n} minutes each way, five days a week. Which pass is the cheapest for me?",
				"What would {n} minutes on one of your bicycles cost me without any pass?",
			},
			answer: "Without a pass each ride costs 1.20 to unlock plus 0.08 for every minute, so {n} minutes are charged at that rate each time. For ten rides a week the month pass at 19.00 is cheaper after roughly the first week, because rides of up to 45 minutes are included. It counts 30 days from the day you buy it.",
			follow: "And what happens if one of those rides takes longer than 45 minutes because of the traffic?",
			reply:  "Only the minutes beyond 45 are charged, at 0.08 each, and there is no second unlocking fee. If you park at any station in between and unlock again, a new 45 minutes begin.",
		},
		{
			title: "Ending a ride",
			handbook: "A ride ends when the lock is closed inside a station area, which the app shows in green; two short tones and a message confirm it. Outside of a green area the app offers to end the ride for a return fee of 5.00, waived for year passes twice a month. " +
				"If no tone is heard, the lock isn't closed: the customer should press the lever down, wait ten seconds and check the app. When the phone has no connection the lock keeps the time itself, so a late message doesn't cost anything.",
			asks: []string{
				"I locked the bicycle at {place} on {day}, but the app says that my ride is still going on. What do I do?",
				"My phone died just before I returned the bicycle at {place}. Did my ride end, and what will I be charged?",
			},
			answer: "The lock itself keeps the time of closing, so a missing message doesn't cost you anything. Please check that the lever at {place} is pressed down fully and wait for two short tones; within ten seconds of a connection the app shows the end of the ride. If it still counts after that, send me the four-digit number on the frame and I will have the lock read out.",
			follow: "There was no free space at the station, so I left it against a fence about {n} metres away. Is that a problem?",
			reply:  "If the spot is inside the green area on the map it counts as the station. Outside of it the return fee of 5.00 applies, unless you have a year pass with one of its two monthly waivers left. Please don't leave it where it narrows the pavement.",
		},
		{
			title: "Damage and faults",
			handbook: "Customers report a fault with the red button on the ride screen, choose the part and may add a photograph. A ride of under three minutes that ends with a fault report is free. The bicycle is then blocked until a mechanic has seen it, usually within 36 hours. " +
				"Nobody has to pay for wear: flat tyres, brakes, chains and lights are ours. For damage by an accident or by careless use up to 150.00 can be charged, never without a mechanic's report, which the customer may ask to see and may object to within 14 days.",
			asks: []string{
				"The back brake of the bicycle I took at {place} hardly works. Do I have to pay for the two minutes, and for the brake?",
				"I fell on {day} and bent the front wheel. I'm fine, but will I be charged for it?",
			},
			answer: "I'm glad that you told us. Worn brakes, tyres, chains and lights are never charged, and a ride under three minutes that ends with a fault report is free. For accident damage a mechanic first writes a report; at most 150.00 can follow, and you may see the report and object within 14 days. Please press the red button on the ride screen so that nobody else takes this bicycle.",
			follow: "How long will the bicycle be out of use after my report? It is the only one close to my flat.",
			reply:  "It is blocked at once and a mechanic usually comes within 36 hours. If fewer than two usable bicycles remain at {place}, the evening van brings others, so there should be one for you tomorrow morning.",
		},
		{
			title: "Reservations",
			handbook: "A bicycle can be reserved up to 15 minutes ahead, free of charge for pass holders three times a day, otherwise for 0.50 each. The reservation ends by itself and can be prolonged once by ten minutes. Cargo bicycles can be reserved up to two days ahead for a deposit of 10.00 that is set off against the ride. " +
				"Groups of five or more write to groups at Pedalgo a week before; they get a meeting point, one invoice and a helper for the first ten minutes.",
			asks: []string{
				"Can I reserve {n} bicycles at {place} for an outing on {day}?",
				"I need a cargo bicycle on {day} to move some boxes. How do I make sure that one is there?",
			},
			answer: "A single bicycle can be reserved 15 minutes ahead in the app, and a cargo bicycle up to two days ahead with a deposit of 10.00, which is set off against the ride. For five or more, please write to our groups desk a week before {day}: you then get a meeting point at {place}, one invoice, and somebody who helps with the first ten minutes.",
			follow: "What if we are late by a quarter of an hour?",
			reply:  "A normal reservation can be prolonged once by ten minutes and then ends without a charge. Group reservations are kept for a full hour, because the helper waits at the meeting point.",
		},
		{
			title: "Accounts and payment",
			handbook: "An account needs a telephone number and a card or direct debit. Invoices are sent on the first of the month and kept for two years under Profile, Documents. A failed payment is tried again after three and seven days; after that the account is paused and a fee of 4.00 is added once. " +
				"A paused account opens again within minutes of the payment. A name or telephone number is changed by the customer in the app; a lost telephone is reported to the support, which asks for the date of the last ride and the town.",
			asks: []string{
				"My account was paused although I have money in the bank. What happened, and how do I get it going again?",
				"I have a new telephone number and can't sign in any more. My last ride was on {day} from {place}.",
			},
			answer: "A payment that fails is tried again after three and after seven days, and only then the account is paused, with a single fee of 4.00. You can pay the open sum under Profile, Payment, and the account opens within minutes. With a new number I can move the account for you: thank you for the day and place of the last ride, I only need the town as well.",
		},
		{
			title: "Young riders",
			handbook: "The minimum age is 16; riders of 14 and 15 may ride on a parent's account after the parent has accepted the family terms. Child seats are fitted to bicycles with a yellow mark, for children of 9 to 22 kilograms. Helmets can't be rented, but the shops listed in the app sell ours at cost for 24.00. " +
				"At most two bicycles may run on one account at a time, four in the family plan, and the account's owner answers for all of them.",
			asks: []string{
				"My daughter is 15. May she ride to school from {place} on my account?",
				"Do you have bicycles with a seat for a small child, and where do I find one near {place}?",
			},
			answer: "From 14 on she may ride on a parent's account once you have accepted the family terms, which takes a minute under Profile, Family. Bicycles with a child seat have a yellow mark on the map and take children of 9 to 22 kilograms. The account's owner answers for all rides, and with the family plan up to four bicycles can run at a time.",
			follow: "And do you rent helmets as well?",
			reply:  "We don't rent helmets, for reasons of hygiene. The shops listed in the app sell ours at cost, for 24.00, and every size from children's heads on is in stock.",
		},
	},
}
